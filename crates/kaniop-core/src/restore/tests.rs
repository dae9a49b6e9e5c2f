//! The restore machine: rows of its table, and the model.
