//! The staging engine: copies the files of a manifest, whole or not at all.
