//! The restore machine: rows of its table, its Jobs, and the model that runs it in a world of faults.

mod model;
