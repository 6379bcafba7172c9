"""Theory: the infinite-width limit, the finite-width saddle point, and the capacity."""
