//! RFC 6937 §3.1 at an endpoint.
