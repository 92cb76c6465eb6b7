//! A UDP socket of one flow.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use headway_cc::{Bytes, Ecn};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::host::{Failures, HostError};
use crate::sys::leave_out_checksums;

/// A socket that is connected to the flow's other end. It never blocks.
#[derive(Debug)]
pub(super) struct FlowSocket {
    socket: Socket,
    is_v6: bool,
    /// The ECN field of datagrams that leave now.
    ecn: Ecn,
    control: Vec<u8>,
    pub(super) failures: Failures,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) length: usize,
    pub(super) ecn: Ecn,
}

impl FlowSocket {
    /// The size of the socket's buffers: a burst of some thousand packets.
    const BUFFER: usize = 8 << 20;

    pub(super) fn open(
        flow: u32,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<FlowSocket, HostError> {
        let is_v6 = local.is_ipv6();
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(HostError::system(flow, "open a UDP socket"))?;
        set_up(&socket, is_v6).map_err(HostError::system(flow, "set up a UDP socket"))?;
        socket
            .bind(&local.into())
            .map_err(HostError::system(flow, "bind a UDP socket"))?;
        socket
            .connect(&remote.into())
            .map_err(HostError::system(flow, "connect a UDP socket"))?;
        Ok(FlowSocket {
            socket,
            is_v6,
            ecn: Ecn::NotEct,
            control: nix::cmsg_space!(libc::c_int, u32),
            failures: Failures::default(),
        })
    }

    /// What IP and UDP add to a datagram.
    pub(super) fn headers(&self) -> Bytes {
        Bytes::new(if self.is_v6 { 48 } else { 28 })
    }

    /// Sends a datagram. One that the kernel does not take is lost, and counted.
    pub(super) fn send(&mut self, datagram: &[u8], ecn: Ecn) {
        if ecn != self.ecn {
            self.mark(ecn);
        }
        if self.socket.send(datagram).is_err() {
            self.failures.not_sent += 1;
        }
    }

    /// Sets the ECN field of datagrams that leave from now on.
    fn mark(&mut self, ecn: Ecn) {
        self.ecn = ecn;
        let bits = i32::from(ecn.bits());
        let done = match self.is_v6 {
            true => setsockopt(&self.socket, sockopt::Ipv6TClass, &bits),
            false => setsockopt(&self.socket, sockopt::Ipv4Tos, &bits),
        };
        debug_assert_eq!(done, Ok(()));
    }

    /// Reads the next datagram, if there is one; of a datagram longer than `buffer`, the beginning.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Option<Arrived> {
        let mut parts = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        let control = Some(&mut self.control[..]);
        // An ICMP error that the port is closed is not a datagram, and does not end the flow.
        let message = recvmsg::<()>(fd, &mut parts, control, MsgFlags::MSG_DONTWAIT).ok()?;
        let mut arrived = Arrived {
            length: message.bytes,
            ecn: Ecn::NotEct,
        };
        for cmsg in message.cmsgs().into_iter().flatten() {
            match cmsg {
                ControlMessageOwned::Ipv4Tos(class) => arrived.ecn = Ecn::of_bits(class),
                ControlMessageOwned::Ipv6TClass(class) => arrived.ecn = Ecn::of_bits(class as u8),
                ControlMessageOwned::RxqOvfl(drops) => self.failures.not_read = u64::from(drops),
                _ => {}
            }
        }
        Some(arrived)
    }
}

impl AsFd for FlowSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set_up(socket: &Socket, is_v6: bool) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // This exceeds the system's usual limit, if that is permitted.
    let size = FlowSocket::BUFFER;
    if setsockopt(socket, sockopt::RcvBufForce, &size).is_err() {
        socket.set_recv_buffer_size(size)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &size).is_err() {
        socket.set_send_buffer_size(size)?;
    }
    let set: Result<(), Errno> = match is_v6 {
        true => setsockopt(socket, sockopt::Ipv6RecvTClass, &true),
        false => setsockopt(socket, sockopt::IpRecvTos, &true),
    };
    set?;
    setsockopt(socket, sockopt::RxqOvfl, &1)?;
    leave_out_checksums(socket, is_v6)
}
