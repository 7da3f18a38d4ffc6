//! The head of a request of HTTP/1 (RFC 9112): of the agent's metrics, and of the pages of `lasthop view`.

use std::str;

/// The most headers of a request.
const HEADERS_MOST: usize = 64;

/// A request, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its method, such as GET.
    pub method: String,
    /// What it is for, without the query.
    pub path: String,
    headers: Vec<(String, String)>,
}

/// What this is not: the head of a request of HTTP/1 with up to 64 headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no request of HTTP/1")]
pub struct NoRequest;

impl Request {
    /// The request that begins so; `None`: its head is not whole yet.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, NoRequest> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MOST];
        let mut request = httparse::Request::new(&mut headers);
        if request.parse(bytes).map_err(|_| NoRequest)?.is_partial() {
            return Ok(None);
        }
        let (Some(method), Some(target)) = (request.method, request.path) else { return Err(NoRequest) };
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let text = |value: &[u8]| Some(str::from_utf8(value).ok()?.trim().to_owned());
        let header = |header: &httparse::Header<'_>| Some((header.name.to_owned(), text(header.value)?));
        let headers = request.headers.iter().filter_map(header).collect();
        Ok(Some(Self { method: method.to_owned(), path: path.to_owned(), headers }))
    }

    /// The values of the headers of this name, in whatever case.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let head = "GET /a/b?c=d HTTP/1.1\r\nhOST:  LocalHost:80 \r\nAccept: x\r\nhost: b\r\n\r\nrest";
        for end in 0..head.len() - 4 {
            assert_eq!(Request::parse(&head.as_bytes()[..end]), Ok(None));
        }
        let request = Request::parse(head.as_bytes()).expect("a request").expect("whole");
        assert_eq!((&*request.method, &*request.path), ("GET", "/a/b"));
        assert_eq!(request.values("Host").collect::<Vec<_>>(), ["LocalHost:80", "b"]);
        for none in ["GET /\r\nHost: a\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "\u{16}\u{3}\u{1}"] {
            assert_eq!(Request::parse(none.as_bytes()), Err(NoRequest), "{none}");
        }
    }
}
