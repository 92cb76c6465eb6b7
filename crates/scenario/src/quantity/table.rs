//! The dimensions of a scenario's quantities.

use super::Dimension;

pub(crate) const RATE: Dimension = Dimension {
    what: "a rate",
    units: &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)],
    example: "12Mbps",
    range_example: "10Mbps..100Mbps",
    min: 1.0,
    max: 1e13,
    limits: "from 1bps to 10000Gbps",
    whole: true,
};

/// A length of time or an instant, which may be 0.
pub(crate) const TIME: Dimension = Dimension {
    what: "a time",
    units: &[
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
    ],
    example: "20ms",
    range_example: "10ms..200ms",
    min: 0.0,
    max: 1e15,
    limits: "from 0s to 1000000s",
    whole: true,
};

/// A propagation delay.
pub(crate) const DELAY: Dimension = Dimension {
    max: 3600e9,
    limits: "from 0s to 3600s",
    ..TIME
};

/// A mean length of time, over 0.
pub(crate) const PERIOD: Dimension = Dimension {
    min: 1.0,
    limits: "from 1ns to 1000000s",
    ..TIME
};

/// A length of time between random events, which must not fill the memory.
pub(crate) const GAP: Dimension = Dimension {
    example: "4s",
    range_example: "1s..50s",
    min: 1e6,
    limits: "from 1ms to 1000000s",
    ..TIME
};

const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// A number of bytes, over 0.
pub(crate) const SIZE: Dimension = Dimension {
    what: "a size",
    units: BYTE_UNITS,
    example: "150kB",
    range_example: "100kB..10MB",
    min: 1.0,
    max: 1e15,
    limits: "from 1B to 1000000GB",
    whole: true,
};

/// The size of one packet.
pub(crate) const PACKET_SIZE: Dimension = Dimension {
    example: "1500B",
    max: 65_535.0,
    limits: "from 1B to 65535B",
    ..SIZE
};

/// A number of packets, over 0.
pub(crate) const PACKETS: Dimension = Dimension {
    what: "a number of packets",
    units: &[("pkt", 1.0)],
    example: "100pkt",
    range_example: "10pkt..100pkt",
    min: 1.0,
    max: 1e9,
    limits: "from 1pkt to 1000000000pkt",
    whole: true,
};

/// A multiple of the BDP, over 0.
pub(crate) const BDP: Dimension = Dimension {
    what: "a multiple of the bandwidth-delay product",
    units: &[("bdp", 1.0)],
    example: "0.5bdp",
    range_example: "0.1bdp..2bdp",
    min: 1e-6,
    max: 1e6,
    limits: "from 0.000001bdp to 1000000bdp",
    whole: false,
};

/// A probability.
pub(crate) const PROBABILITY: Dimension = Dimension {
    what: "a probability",
    units: &[("", 1.0), ("%", 0.01)],
    example: "0.01",
    range_example: "0..0.05",
    min: 0.0,
    max: 1.0,
    limits: "from 0 to 1",
    whole: false,
};

/// A discipline's number of queues.
pub(crate) const QUEUES: Dimension = Dimension {
    what: "a whole number of queues",
    units: &[("", 1.0)],
    example: "1024",
    range_example: "16..1024",
    min: 1.0,
    max: 65_535.0,
    limits: "from 1 to 65535",
    whole: true,
};

/// A factor of a control law.
pub(crate) const GAIN: Dimension = Dimension {
    what: "a gain",
    units: &[("", 1.0)],
    example: "0.4",
    range_example: "0.1..0.5",
    min: 0.0,
    max: 10.0,
    limits: "from 0 to 10",
    whole: false,
};

/// The size of a token bucket.
pub(crate) const TOKENS: Dimension = Dimension {
    what: "a number of tokens",
    units: &[("", 1.0)],
    example: "5",
    range_example: "2..10",
    min: 1.0,
    max: 1e6,
    limits: "from 1 to 1000000",
    whole: false,
};
