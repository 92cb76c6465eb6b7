//! Socket options that no crate offers.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, socklen_t};

/// Makes a UDP socket leave out checksums, and accept packets without one. Routers rewrite fields
/// that checksums cover, and no wire can damage these packets.
///
/// # Errors
/// If the kernel refuses.
pub fn leave_out_checksums(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    const UDP_NO_CHECK6_TX: c_int = 101;
    const UDP_NO_CHECK6_RX: c_int = 102;
    if is_v6 {
        set(socket, libc::IPPROTO_UDP, UDP_NO_CHECK6_TX, 1)?;
        set(socket, libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
    } else {
        set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1)
    }
}

/// Limits the receive window of a listening TCP socket, and of the sockets that it accepts, to
/// about `bytes` of data.
///
/// The limit is not exact: the kernel derives the window from the buffer's size, and measures how
/// much of a buffer is data as packets arrive. [`clamp_window`] makes it exact.
///
/// # Errors
/// If the kernel refuses.
pub fn limit_receive_window(listener: &impl AsFd, bytes: u64) -> io::Result<()> {
    let size = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    // The kernel doubles this size. A buffer with a given size does not grow.
    set(listener, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
        .or_else(|_| set(listener, libc::SOL_SOCKET, libc::SO_RCVBUF, size))?;
    clamp_window(listener, bytes)
}

/// Limits the receive window of a TCP socket to `bytes` of data. The kernel replaces this limit
/// whenever it measures how much of the buffer is data, so call this again after each read.
///
/// # Errors
/// If the kernel refuses.
pub fn clamp_window(socket: &impl AsFd, bytes: u64) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

#[allow(unsafe_code)]
fn set(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let at = (&raw const value).cast::<c_void>();
    // SAFETY: `at` points to a `c_int` that lives through the call, of the length that is given.
    let result = unsafe { libc::setsockopt(fd, level, name, at, size_of_val(&value) as socklen_t) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's data about a TCP connection, as far as Linux 4.19 goes (`struct tcp_info` in its
/// `uapi/linux/tcp.h`); fields that an older kernel lacks are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub window_scales: u8,
    pub flags: u8,
    pub rto_us: u32,
    pub ato_us: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    /// Packets in flight. `sacked`, `lost` and `retrans` are in packets, too.
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub snd_ssthresh: u32,
    /// The congestion window in packets.
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt_us: u32,
    pub rcv_space: u32,
    /// Packets retransmitted in total.
    pub total_retrans: u32,
    /// Bytes a second; the largest number if the socket is not paced.
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt_us: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    /// Bytes of the stream that were sent, including retransmissions.
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
}

/// Reads the kernel's data about `socket`.
///
/// # Errors
/// If it is not a TCP socket.
#[allow(unsafe_code)]
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let fd = socket.as_fd().as_raw_fd();
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as socklen_t;
    let at = (&raw mut info).cast::<c_void>();
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is integers alone, so that
    // any bytes do.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length) };
    match result {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The data of the kernel's BBR: `struct tcp_bbr_info` in its `linux/inet_diag.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BbrInfo {
    bw_lo: u32,
    bw_hi: u32,
    min_rtt_us: u32,
    pacing_gain: u32,
    cwnd_gain: u32,
}

impl BbrInfo {
    /// BtlBw, in bytes of data a second.
    pub fn btlbw(&self) -> u64 {
        u64::from(self.bw_hi) << 32 | u64::from(self.bw_lo)
    }

    /// RTprop, in microseconds; `None` before the first estimate.
    pub fn rtprop_us(&self) -> Option<u32> {
        (self.min_rtt_us != u32::MAX).then_some(self.min_rtt_us)
    }
}

/// The data of a TCP socket's BBR; `None` with another controller.
#[allow(unsafe_code)]
pub fn bbr_info(socket: &impl AsFd) -> Option<BbrInfo> {
    let fd = socket.as_fd().as_raw_fd();
    let mut info = BbrInfo::default();
    let mut length = size_of::<BbrInfo>() as socklen_t;
    let at = (&raw mut info).cast::<c_void>();
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is integers alone, so that
    // any bytes do.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_CC_INFO,
            at,
            &raw mut length,
        )
    };
    // Other controllers return less, or nothing.
    (result == 0 && length as usize == size_of::<BbrInfo>()).then_some(info)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The offsets that `pahole -C tcp_info vmlinux` shows.
    #[test]
    fn tcp_info_layout_matches_the_kernel() {
        let offsets = [
            offset_of!(TcpInfo, unacked),
            offset_of!(TcpInfo, rtt_us),
            offset_of!(TcpInfo, snd_cwnd),
            offset_of!(TcpInfo, total_retrans),
            offset_of!(TcpInfo, pacing_rate),
            offset_of!(TcpInfo, delivery_rate),
            offset_of!(TcpInfo, bytes_sent),
        ];
        assert_eq!(offsets, [24, 68, 80, 100, 104, 160, 200]);
    }
}
