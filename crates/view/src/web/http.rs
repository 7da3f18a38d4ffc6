//! As much of HTTP/1.1 (RFC 9112) as a page on this machine needs: GET, one request for each connection.

use lasthop_status::http;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The most bytes of a request.
const REQUEST_BYTES_MOST: usize = 16 << 10;

/// Nothing from elsewhere, nothing inline but style; no address of this page in a `Referer`.
const HEADERS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; \
    style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

/// A request for a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) host: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    code: u16,
    kind: &'static str,
    body: String,
}

/// A connection until a moment: a client that sends or takes a byte now and then gains no time by it.
pub(crate) struct Until<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl<'a> Until<'a> {
    pub(crate) fn new(stream: &'a TcpStream, within: Duration) -> Self {
        Self { stream, end: Instant::now() + within }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Request {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// It is none that is answered. The response says why.
    pub(crate) fn read(mut stream: impl Read) -> Result<Self, Response> {
        let mut head = Vec::new();
        let mut buffer = [0; 2048];
        loop {
            if let Some(request) = Self::parse(&head)? {
                return Ok(request);
            }
            match stream.read(&mut buffer) {
                Ok(1..) if head.len() > REQUEST_BYTES_MOST => {
                    return Err(Response::text(431, "The request is too long.\n"));
                }
                Ok(read @ 1..) => head.extend_from_slice(&buffer[..read]),
                Ok(0) | Err(_) => return Err(Response::text(408, "The request is not whole.\n")),
            }
        }
    }

    /// `None`: it is not whole yet.
    fn parse(head: &[u8]) -> Result<Option<Self>, Response> {
        let bad = || Response::text(400, "This is no request of HTTP/1.1.\n");
        let Some(request) = http::Request::parse(head).map_err(|_| bad())? else { return Ok(None) };
        if request.method != "GET" {
            return Err(Response::text(405, "Only GET is answered.\n"));
        }
        let hosts: Vec<&str> = request.values("host").collect();
        let [host] = hosts.as_slice() else { return Err(bad()) };
        Ok(Some(Self { host: host.to_ascii_lowercase(), path: request.path }))
    }
}

impl Response {
    pub(crate) fn page(body: String) -> Self {
        Self { code: 200, kind: "text/html", body }
    }

    pub(crate) fn script(body: &str) -> Self {
        Self { code: 200, kind: "text/javascript", body: body.to_owned() }
    }

    pub(crate) const fn json(body: String) -> Self {
        Self { code: 200, kind: "application/json", body }
    }

    pub(crate) fn text(code: u16, body: &str) -> Self {
        Self { code, kind: "text/plain", body: body.to_owned() }
    }

    pub(crate) fn send(&self, mut stream: impl Write) -> io::Result<()> {
        let (code, kind, length) = (self.code, self.kind, self.body.len());
        let reason = match code {
            200 => "OK",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            _ => "Bad Request",
        };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n{HEADERS}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.body.as_bytes())
    }
}

/// The head of a response that goes on for ever: server-sent events. A browser that lost them asks again after 2 s.
pub(crate) fn begin_events(mut stream: impl Write) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n{HEADERS}\r\nretry: 2000\n\n"
    );
    stream.write_all(head.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host_and_its_path_has_no_query() {
        let head = b"GET /a/b?c=d HTTP/1.1\r\nhOST:  LocalHost:80 \r\nAccept: x\r\n\r\n";
        let request = Request::parse(head).expect("a request");
        assert_eq!(request, Some(Request { path: "/a/b".into(), host: "localhost:80".into() }));
        for (head, code) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET /\r\nHost: a\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        ] {
            assert_eq!(Request::parse(head.as_bytes()).expect_err("refused").code, code, "{head}");
        }
    }
}
