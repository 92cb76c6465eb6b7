//! Finds listening sockets that keep the controller of an agent that has ended.
//!
//! Such a socket chose the controller while the ended agent had it registered. Until the socket
//! chooses again, the connections that it accepts have the ended agent's program, and no agent
//! serves them. sock_diag cannot find these sockets: it gives a controller's name, which is the
//! same for both agents. The kernel's iterator over sockets gives a BPF program the controller
//! itself.

use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use headway_machine::Machine;
use libbpf_rs::{ErrorKind, Iter, Link, Object, ObjectBuilder};
use serde_json::{Value, json};

use super::layout;
use crate::error::{Error, Result};

const OBJECT: &[u8] = include_bytes!("../../../kernel/bpf/objects/headway_listeners.bpf.o");
const CANNOT: &str = "cannot look at listening sockets";
/// The size of the program's `struct listener`: an address, its family and a port.
const LENGTH: usize = 20;

/// Finds such sockets in the network namespace of the calling thread.
pub struct Listeners {
    name: String,
    _object: Object,
    link: Link,
}

impl Listeners {
    /// Finds sockets that have a controller of this name other than the registered one, whose map
    /// has the id `registered`.
    ///
    /// # Errors
    /// One line: this kernel has no such iterator, or does not permit it.
    pub fn new(name: &str, registered: u32) -> Result<Listeners> {
        let failed = |e: libbpf_rs::Error| match e.kind() {
            ErrorKind::PermissionDenied => Error::failed(
                CANNOT,
                format_args!("not permitted: {}", Machine::here().bpf()),
            ),
            _ => Error::failed(CANNOT, format!("{e:#}").lines().next().unwrap_or_default()),
        };
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(OBJECT).map_err(failed)?;
        layout::set_constant(&mut open, OBJECT, "controller", name.as_bytes())?;
        layout::set_constant(&mut open, OBJECT, "registered", &registered.to_ne_bytes())?;
        let object = open.load().map_err(failed)?;
        let link = {
            let program = object.progs_mut().next();
            let program = program.ok_or_else(|| Error::failed(CANNOT, "no program"))?;
            program.attach().map_err(failed)?
        };
        Ok(Listeners {
            name: name.to_owned(),
            _object: object,
            link,
        })
    }

    /// The addresses at which such sockets listen now.
    ///
    /// # Errors
    /// One line, if the kernel does not list its sockets.
    pub fn find(&self) -> Result<Vec<SocketAddr>> {
        let mut bytes = Vec::new();
        let mut sockets = Iter::new(&self.link).map_err(|e| Error::failed(CANNOT, e))?;
        let read = sockets.read_to_end(&mut bytes);
        read.map_err(|e| Error::failed(CANNOT, e))?;
        Ok(addresses(&bytes))
    }

    /// The addresses for `headwayd status`; null if they cannot be found.
    pub fn describe(&self) -> Value {
        let listener = |at: SocketAddr| json!({ "address": at.to_string(), "name": self.name });
        match self.find() {
            Ok(found) => found.into_iter().map(listener).collect(),
            Err(_) => Value::Null,
        }
    }
}

/// The line about such a socket, for the log and for `headwayd status`.
pub fn warning(address: &str, name: &str) -> String {
    format!(
        "the socket that listens at {address} keeps {name} of an agent that has ended, so connections \
         that it accepts are not served; restart its program, or let it choose {name} again"
    )
}

fn addresses(bytes: &[u8]) -> Vec<SocketAddr> {
    let number = |bytes: &[u8]| u16::from_ne_bytes([bytes[0], bytes[1]]);
    let listener = |bytes: &[u8]| {
        let address: [u8; 16] = bytes[..16].try_into().expect("sixteen bytes");
        let port = number(&bytes[18..]);
        match i32::from(number(&bytes[16..])) {
            libc::AF_INET6 => SocketAddr::from((Ipv6Addr::from(address), port)),
            _ => {
                let [a, b, c, d, ..] = address;
                SocketAddr::from((Ipv4Addr::new(a, b, c, d), port))
            }
        }
    };
    bytes.chunks_exact(LENGTH).map(listener).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::net::TcpListener;

    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::TcpCongestion;

    use super::*;

    #[test]
    fn addresses_are_read_as_the_program_writes_them() {
        let mut bytes = Vec::new();
        for (address, family, port) in [
            ([127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2, 80u16),
            (Ipv6Addr::LOCALHOST.octets(), 10, 65535),
        ] {
            bytes.extend(address);
            bytes.extend(u16::to_ne_bytes(family));
            bytes.extend(port.to_ne_bytes());
        }
        let found: Vec<_> = addresses(&bytes)
            .iter()
            .map(SocketAddr::to_string)
            .collect();
        assert_eq!(found, ["127.0.0.1:80", "[::1]:65535"]);
        assert!(addresses(&[]).is_empty());
    }

    /// Reno takes the place of an ended agent's controller: no map registers it.
    #[test]
    #[ignore = "needs root: make test-system"]
    fn a_listener_is_found_by_the_name_of_its_controller() {
        let found = |name: &str| match Listeners::new(name, u32::MAX) {
            Ok(listeners) => Some(listeners.find().expect("they can be read")),
            Err(error) if error.to_string().contains("not permitted") => None,
            Err(error) => panic!("{error}"),
        };
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let socket = TcpListener::bind(host).expect("loopback");
            let address = socket.local_addr().expect("it has one");
            setsockopt(&socket, TcpCongestion, &OsString::from("reno")).expect("reno is available");
            let (Some(same), Some(other)) = (found("reno"), found("cubic")) else {
                println!("skipped: BPF programs are not permitted here");
                return;
            };
            assert!(same.contains(&address), "{same:?}");
            assert!(!other.contains(&address), "{other:?}");
        }
    }
}
