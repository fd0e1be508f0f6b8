"""Linear algebra that learners share: systems of kernel matrices solved directly or by iterations,
and eigenvectors of sums."""
