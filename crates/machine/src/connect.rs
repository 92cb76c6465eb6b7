//! Connects to a Unix socket. The standard library's `connect` has no time limit, and waits for as
//! long as the clients before it are not accepted.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// Connects to the server that listens at `path`. This may take at most `time`, and so may each
/// later write.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`], if the server has not accepted earlier clients within that time;
/// other kinds, if no server listens there.
pub fn connect_within(path: &Path, time: Duration) -> io::Result<UnixStream> {
    let (family, flags) = (AddressFamily::Unix, SockFlag::SOCK_CLOEXEC);
    let client = socket(family, SockType::Stream, flags, None)?;
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    setsockopt(&client, sockopt::SendTimeout, &TimeVal::milliseconds(time))?;
    connect(client.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(client.into())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::iter;
    use std::os::unix::net::UnixListener;
    use std::{env, fs, process};

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    const TIME: Duration = Duration::from_millis(10);

    #[test]
    fn a_connection_to_a_server_that_accepts_nobody_ends_in_time() {
        let path = env::temp_dir().join(format!("headway-test-connect-{}", process::id()));
        let refused = connect_within(&path, TIME).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        let server = UnixListener::bind(&path).expect("a folder");
        // A short queue, which these clients fill.
        listen(&server, Backlog::new(1).expect("a length")).expect("it listens");
        let tries = iter::repeat_with(|| connect_within(&path, TIME)).take(10);
        let mut waiting: Vec<_> = tries.map_while(Result::ok).collect();
        assert!((1..10).contains(&waiting.len()), "{}", waiting.len());
        let late = connect_within(&path, TIME).expect_err("the queue is full");
        assert_eq!(late.kind(), ErrorKind::WouldBlock);
        server.accept().expect("a client waits");
        waiting.push(connect_within(&path, TIME).expect("there is room"));
        drop(server);
        let refused = connect_within(&path, TIME).expect_err("the server has ended");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        fs::remove_file(&path).expect("the file exists");
    }
}
