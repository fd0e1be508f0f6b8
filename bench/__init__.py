"""Benchmarks, side by side with peers in the same run at equal quality: `./do bench NAME`."""
