"""Support vector machines: the exact dual over rows, or hinge losses over features."""
