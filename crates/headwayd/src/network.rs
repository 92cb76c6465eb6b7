//! Receives what a measurement agent inside the network (`headway netwatch`) reports about paths. A
//! thread of its own does this.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::Path as File;
use std::thread::sleep;
use std::time::Duration as Wait;

use headway_cc::{Duration, NetworkView, Time};
use ipnet::IpNet;
use serde::Deserialize;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::error::{Error, Result};
use crate::system::clock;

mod table;

pub use table::PathTable;

/// Where the measurement agent pushes the states of all paths, whenever they are new.
const STREAM: &str = "/v1/stream";
const TO_CONNECT: Wait = Wait::from_secs(2);
/// A stream is opened again after this time, because its other end may have vanished.
const TO_STREAM: Wait = Wait::from_secs(30);
const FIRST_PAUSE: Wait = Wait::from_millis(250);
const LAST_PAUSE: Wait = Wait::from_secs(5);
/// The most bytes of an event.
const LONGEST: u64 = 16 << 20;

/// A path, and what its switches report about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub name: String,
    /// The senders that use the path.
    pub from: IpNet,
    /// The receivers that they reach by it.
    pub to: IpNet,
    pub view: NetworkView,
}

/// What comes from a measurement agent.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The states of all paths, and how many states were refused because they are impossible.
    Paths {
        reported_at: Time,
        paths: PathTable,
        refused: u64,
    },
    /// Nothing comes any more, for this reason.
    Silence(String),
}

/// The address of a measurement agent, and the token for it.
#[derive(Debug)]
pub struct Source {
    url: String,
    token: Option<String>,
    client: ureq::Agent,
}

impl Source {
    /// A source at `url`, with the bearer token and the authority's certificate of these files.
    ///
    /// # Errors
    /// One line: a malformed URL, plain HTTP beyond this machine, a file that cannot be read.
    pub fn new(url: &str, token: Option<&File>, authority: Option<&File>) -> Result<Source> {
        let url = url.trim_end_matches('/');
        let wrong = |why: &str| Err(Error::Usage(format!("--netwatch {url}: {why}")));
        let is_plain = match url.split_once("://") {
            Some(("http", _)) => true,
            Some(("https", _)) => false,
            _ => return wrong("write http://127.0.0.1:PORT, or https://HOST:PORT"),
        };
        if is_plain && !is_loopback(url) {
            return wrong("plain http is for this machine only; use https beyond this machine");
        }
        let token = token
            .map(|file| read("--netwatch-token", file))
            .transpose()?;
        let mut tls = TlsConfig::builder();
        if let Some(file) = authority {
            let text = read("--netwatch-authority", file)?;
            let certificate = Certificate::from_pem(text.as_bytes()).map_err(|why| {
                Error::Usage(format!("--netwatch-authority {}: {why}", file.display()))
            })?;
            tls = tls.root_certs(RootCerts::new_with_certs(&[certificate]));
        }
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(TO_CONNECT))
            .timeout_recv_response(Some(TO_CONNECT))
            .timeout_recv_body(Some(TO_STREAM))
            .max_redirects(0)
            .tls_config(tls.build())
            .build();
        Ok(Source {
            url: url.to_owned(),
            token: token.map(|text| text.trim().to_owned()),
            client: config.into(),
        })
    }

    /// Hands all news to `tell`, for ever.
    pub fn listen(&self, mut tell: impl FnMut(News)) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut is_heard = false;
            let ended = self.hear(|news| {
                is_heard = true;
                tell(news);
            });
            // A stream ends after half a minute and is opened again, which does not count as
            // silence.
            if is_heard {
                pause = FIRST_PAUSE;
            }
            if let Err(why) = ended
                && !is_heard
            {
                tell(News::Silence(why));
                pause = (pause * 2).min(LAST_PAUSE);
            }
            sleep(pause);
        }
    }

    /// Reads a stream to its end.
    fn hear(&self, mut tell: impl FnMut(News)) -> std::result::Result<(), String> {
        let mut asked = self
            .client
            .get(format!("{}{STREAM}", self.url))
            .header("Accept", "text/event-stream");
        if let Some(token) = &self.token {
            asked = asked.header("Authorization", format!("Bearer {token}"));
        }
        let answer = asked.call().map_err(|why| why.to_string())?;
        let mut lines = BufReader::new(answer.into_body().into_reader());
        let (mut event, mut room) = (String::new(), LONGEST);
        loop {
            let mut line = String::new();
            let read = (&mut lines).take(room).read_line(&mut line);
            room -= read.map_err(|why| why.to_string())? as u64;
            match line.trim_end() {
                _ if room == 0 => return Err("an event is longer than 16 MiB".to_owned()),
                _ if line.is_empty() => return Ok(()),
                "" if event.is_empty() => room = LONGEST,
                "" => {
                    tell(parse(&event, clock::now())?);
                    (event, room) = (String::new(), LONGEST);
                }
                line => event += line.strip_prefix("data:").unwrap_or_default(),
            }
        }
    }
}

/// Is the address of this URL on this machine?
fn is_loopback(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    // The text before an @ is a user's name.
    !authority.contains('@') && (host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback()))
}

fn read(option: &str, file: &File) -> Result<String> {
    let text = fs::read_to_string(file);
    // Windows puts a byte order mark before a text.
    text.map(|text| text.trim_start_matches('\u{feff}').to_owned())
        .map_err(|why| Error::Usage(format!("{option} {}: {why}", file.display())))
}

/// An event as the measurement agent writes it.
#[derive(Debug, Deserialize)]
struct Told {
    paths: Vec<ToldPath>,
}

#[derive(Debug, Deserialize)]
struct ToldPath {
    name: String,
    source: IpNet,
    destination: IpNet,
    /// Packets a second.
    pnc: f64,
    /// Shares from 0 to 1.
    pna: f64,
    known: f64,
    age_s: f64,
}

impl ToldPath {
    /// The path; `None` if a value is impossible.
    fn read(self) -> Option<Path> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let count = |value: f64| value.is_finite() && value >= 0.0;
        let can_be = count(self.pnc) && share(self.pna) && share(self.known) && count(self.age_s);
        can_be.then(|| Path {
            name: self.name,
            from: self.source,
            to: self.destination,
            view: NetworkView {
                pnc: self.pnc,
                pna: self.pna,
                known: self.known,
                age: Duration::from_secs_f64(self.age_s.min(1e6)),
            },
        })
    }
}

fn parse(event: &str, reported_at: Time) -> std::result::Result<News, String> {
    let told: Told = serde_json::from_str(event)
        .map_err(|why| format!("the states of paths are malformed: {why}"))?;
    let count = told.paths.len();
    let paths: Vec<Path> = told.paths.into_iter().filter_map(ToldPath::read).collect();
    Ok(News::Paths {
        reported_at,
        refused: (count - paths.len()) as u64,
        paths: paths.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const EVENT: &str = r#"{"paths":[
        {"name":"a-b","source":"10.0.0.1/32","destination":"10.0.1.0/24","pnc":12.5,"pna":0.25,"known":0.5,"age_s":1.5},
        {"name":"lies","source":"10.0.0.2/32","destination":"10.0.1.0/24","pnc":1,"pna":1.25,"known":0.5,"age_s":0}]}"#;

    /// Reads a request to its end, and gives it back.
    fn request(stream: &TcpStream) -> String {
        let mut lines = BufReader::new(stream);
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") && lines.read_line(&mut text).unwrap() > 0 {}
        text
    }

    fn begin(mut stream: &TcpStream) {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
    }

    fn source(listener: &TcpListener) -> Source {
        let url = format!("http://{}/", listener.local_addr().unwrap());
        Source::new(&url, None, None).unwrap()
    }

    #[test]
    fn possible_states_are_taken_and_impossible_ones_are_refused() {
        let News::Paths { paths, refused, .. } = parse(EVENT, Time::ZERO).unwrap() else {
            panic!("silence");
        };
        assert_eq!(refused, 1);
        assert_eq!(paths.len(), 1);
        let ends = ["10.0.0.1", "10.0.1.7"].map(|text| text.parse().unwrap());
        let path = paths.of(ends[0], ends[1]).unwrap();
        assert_eq!(path.from, "10.0.0.1/32".parse().unwrap());
        assert_eq!(path.view.age, Duration::from_millis(1500));
        for text in ["", "{}", "[1]", r#"{"paths":[{"name":"a"}]}"#] {
            assert!(parse(text, Time::ZERO).is_err(), "{text}");
        }
    }

    #[test]
    fn a_stream_that_ends_is_opened_again_and_a_refused_one_is_silence() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = std::env::temp_dir().join(format!("headwayd-token-{}", std::process::id()));
        fs::write(&folder, "secret\n").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let source = Source::new(&url, Some(&folder), None).unwrap();
        fs::remove_file(&folder).unwrap();
        let (told, hears) = channel();
        thread::spawn(move || source.listen(|news| drop(told.send(news))));
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = request(&stream);
            assert!(asked.starts_with("GET /v1/stream HTTP/1.1\r\n"), "{asked}");
            assert!(
                asked
                    .to_lowercase()
                    .contains("authorization: bearer secret"),
                "{asked}"
            );
            begin(&stream);
            // The event comes in two pieces, with a comment and a field that are ignored.
            let text = format!(
                ": hello\nevent: paths\ndata: {}\n\n",
                EVENT.replace('\n', "")
            );
            stream.write_all(&text.as_bytes()[..40]).unwrap();
            stream.write_all(&text.as_bytes()[40..]).unwrap();
            drop(stream);
            let News::Paths { paths, .. } = hears.recv().unwrap() else {
                panic!("silence");
            };
            assert_eq!(paths.len(), 1);
        }
        let (mut stream, _) = listener.accept().unwrap();
        request(&stream);
        // Later connections are refused.
        drop(listener);
        stream
            .write_all(
                b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            )
            .unwrap();
        for word in ["401", "refused"] {
            match hears.recv().unwrap() {
                News::Silence(why) => assert!(why.contains(word), "{why}"),
                News::Paths { .. } => panic!("no report may come"),
            }
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = source(&listener);
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            request(&stream);
            begin(&stream);
            while stream
                .write_all(b"data: 0123456789012345678901234567890123456789\n")
                .is_ok()
            {}
        });
        let ended = source.hear(|_| panic!("no report may come"));
        let why = ended.unwrap_err();
        assert!(why.contains("16 MiB"), "{why}");
        server.join().unwrap();
    }

    #[test]
    fn tokens_do_not_leave_this_machine_unencrypted() {
        for (url, hint) in [
            ("10.0.0.1:8080", "write http://127.0.0.1:PORT"),
            ("ftp://127.0.0.1", "write http://"),
            ("http://10.0.0.1:8080", "use https"),
            ("http://localhost.example:8080", "use https"),
            ("http://localhost:80@evil.example", "use https"),
        ] {
            let error = Source::new(url, None, None).unwrap_err().to_string();
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
        for url in [
            "http://localhost:1",
            "http://[::1]:1",
            "http://127.0.0.2:1/",
            "https://10.0.0.1",
        ] {
            assert!(Source::new(url, None, None).is_ok(), "{url}");
        }
        let missing = Source::new("https://10.0.0.1", Some(File::new("/nowhere/token")), None);
        let error = missing.unwrap_err().to_string();
        assert!(
            error.starts_with("--netwatch-token /nowhere/token: "),
            "{error}"
        );
    }
}
