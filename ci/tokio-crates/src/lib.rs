//! Crates that need Tokio, tried on `urgency_web::tokio_driver`; see `tests/`.
