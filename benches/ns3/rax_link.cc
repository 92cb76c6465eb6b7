// Runs bulk TCP flows over one drop-tail bottleneck in ns-3, to compare with Headway's simulator.
//
// The defaults are Rax's link: 20 Mbit/s, 50 ms RTT, a device queue of 10 packets of 1250 bytes
// (1/10 BDP). The queue is the bottleneck DEVICE's own: ns-3's traffic-control layer has no queue
// disc and no back-pressure, so a full queue drops, as a router's does. Acknowledgements return
// over a link that only delays. The program prints one line of JSON.
//
//   --routers=0   sender = receiver                      the least work for ns-3
//   --routers=1   sender - router = receiver             the bottleneck (=) is not the sender's own
//   --routers=2   sender - router = router - receiver    the usual dumbbell
//
// With --disc the queue is a queue disc of ns-3's traffic control instead (CoDelQueueDisc, ...), as
// large, and the device holds one packet for it.
//
// The other links (-) are 10 Gbit/s without delay. Random loss strikes on the way into the queue,
// so --loss needs a router.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t kPppHeader = 2;          // bytes ns-3's point-to-point device adds to a packet
constexpr uint32_t kHeaders = 20 + 20 + 12; // IPv4, TCP, timestamp option padded to words
constexpr uint16_t kPort = 5001;

// TcpLedbat of ns-3.37 bounds the window by what was in flight before the acknowledgement, and so
// never grows it. RFC 6817 allows a packet more (ALLOWED_INCREASE), as later versions of ns-3 do.
// This is ns-3's class given that packet. It takes the flight for one packet larger while the
// window is adjusted.
class TcpLedbatFixed : public TcpLedbat {
 public:
  static TypeId GetTypeId() {
    static TypeId type =
        TypeId("ns3::TcpLedbatFixed").SetParent<TcpLedbat>().AddConstructor<TcpLedbatFixed>().SetGroupName("Internet");
    return type;
  }
  Ptr<TcpCongestionOps> Fork() override { return CopyObject<TcpLedbatFixed>(this); }

 protected:
  void CongestionAvoidance(Ptr<TcpSocketState> tcb, uint32_t segments) override {
    const SequenceNumber32 acked = tcb->m_lastAckedSeq;
    tcb->m_lastAckedSeq -= tcb->m_segmentSize;
    TcpLedbat::CongestionAvoidance(tcb, segments);
    tcb->m_lastAckedSeq = acked;
  }
};
NS_OBJECT_ENSURE_REGISTERED(TcpLedbatFixed);

struct Options {
  std::string cc = "TcpNewReno";
  std::string recovery = "TcpPrrRecovery";
  DataRate rate{"20Mbps"};
  Time rtt = MilliSeconds(50);
  uint32_t queue = 10;    // packets waiting; the one being sent is not counted
  std::string disc;       // queue disc of the bottleneck; empty: none
  uint32_t packet = 1250; // bytes of IP packet
  double loss = 0;        // Bernoulli, on the way into the queue
  uint32_t flows = 1;
  double seconds = 60; // measured, after the warm-up
  double warmup = 0;
  uint32_t delack = 1;   // segments an acknowledgement
  uint32_t ssthresh = 0; // initial, in segments; 0: unbounded
  uint32_t iw = 10;      // initial window, segments
  Time min_rto = Seconds(1);
  uint32_t routers = 0;
  uint64_t seed = 1;
};

[[noreturn]] void Refuse(const std::string& what) {
  std::cerr << "rax_link: " << what << std::endl;
  std::_Exit(2); // without destructors, because the ns-3 objects are incomplete
}

// Refuses a name that is not a constructible class of the given base.
template <typename Base>
void CheckClass(const std::string& option, const std::string& name, const std::string& example) {
  TypeId type;
  if (TypeId::LookupByNameFailSafe("ns3::" + name, &type) && type.HasConstructor()) {
    std::unique_ptr<ObjectBase> made(type.GetConstructor()());
    if (dynamic_cast<Base*>(made.get())) return;
  }
  Refuse(option + "=" + name + " is not known to this ns-3; for example " + option + "=" + example);
}

Options Parse(int argc, char** argv) {
  Options o;
  CommandLine cmd(__FILE__);
  cmd.AddValue("cc", "congestion control: TcpNewReno, TcpLinuxReno, TcpCubic, TcpBbr, TcpVegas, TcpDctcp, TcpLedbatFixed...", o.cc);
  cmd.AddValue("recovery", "TcpPrrRecovery or TcpClassicRecovery", o.recovery);
  cmd.AddValue("rate", "bottleneck rate in IP bytes (20Mbps)", o.rate);
  cmd.AddValue("rtt", "propagation round trip (50ms)", o.rtt);
  cmd.AddValue("queue", "device queue, packets", o.queue);
  cmd.AddValue("disc", "queue disc instead: CoDelQueueDisc, PieQueueDisc, RedQueueDisc, FqCoDelQueueDisc", o.disc);
  cmd.AddValue("packet", "IP packet, bytes", o.packet);
  cmd.AddValue("loss", "probability of random loss before the queue (needs a router)", o.loss);
  cmd.AddValue("flows", "number of bulk flows", o.flows);
  cmd.AddValue("seconds", "measured simulated seconds", o.seconds);
  cmd.AddValue("warmup", "simulated seconds before measuring", o.warmup);
  cmd.AddValue("delack", "segments per acknowledgement", o.delack);
  cmd.AddValue("ssthresh", "initial slow-start threshold, segments (0: unbounded)", o.ssthresh);
  cmd.AddValue("iw", "initial window, segments", o.iw);
  cmd.AddValue("min-rto", "minimum retransmission timeout", o.min_rto);
  cmd.AddValue("routers", "routers on the way: 0, 1 or 2", o.routers);
  cmd.AddValue("seed", "ns-3's run number", o.seed);
  cmd.Parse(argc, argv);

  CheckClass<TcpCongestionOps>("--cc", o.cc, "TcpNewReno");
  CheckClass<TcpRecoveryOps>("--recovery", o.recovery, "TcpPrrRecovery");
  TypeId disc; // not instantiated for the check, because PIE sets a timer at once
  if (!o.disc.empty() && !(TypeId::LookupByNameFailSafe("ns3::" + o.disc, &disc) && disc.IsChildOf(QueueDisc::GetTypeId())))
    Refuse("--disc=" + o.disc + " is not known to this ns-3; for example --disc=CoDelQueueDisc");
  if (o.packet <= kHeaders)
    Refuse("--packet must exceed the headers' " + std::to_string(kHeaders) + " bytes");
  if (o.rate.GetBitRate() == 0 || o.rtt.IsNegative() || o.queue == 0 || o.flows == 0 || o.flows > 50000)
    Refuse("--rate and --queue must be positive, --rtt not negative, --flows 1..50000");
  if (o.seconds <= 0 || o.warmup < 0 || o.loss < 0 || o.loss >= 1 || o.delack == 0)
    Refuse("--seconds and --delack must be positive, --warmup not negative, --loss in [0, 1)");
  if (o.routers > 2 || (o.loss > 0 && o.routers == 0)) Refuse("--routers must be 0, 1 or 2, and 1 or 2 with --loss");
  return o;
}

double CpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

// Counters at a moment. A measurement is the difference of two.
struct Counts {
  uint64_t departed = 0;       // packets the bottleneck began to send
  uint64_t departed_bytes = 0; // their IP bytes
  uint64_t queue_drops = 0;
  uint64_t random_drops = 0;
  uint64_t timeouts = 0;        // every expiry of a retransmission timer
  uint64_t fast_recoveries = 0; // entries into CA_RECOVERY
  double queue_integral = 0;    // packet seconds of waiting
  std::vector<uint64_t> goodput; // bytes that each receiving application received
};

class Bench {
 public:
  explicit Bench(const Options& options) : o(options) { Build(); }

  void Run() {
    Counts before;
    Simulator::Schedule(Seconds(o.warmup), [&] { before = Take(); });
    Simulator::Stop(Seconds(o.warmup + o.seconds));
    const double cpu0 = CpuSeconds();
    const auto wall0 = std::chrono::steady_clock::now();
    Simulator::Run();
    const double cpu = CpuSeconds() - cpu0;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall0;
    Print(before, Take(), cpu, wall.count());
  }

 private:
  void Build() {
    ConfigureTcp();
    NodeContainer nodes;
    nodes.Create(2 + o.routers);
    InternetStackHelper().Install(nodes);
    const uint32_t near = o.routers > 0 ? 1 : 0; // the node that feeds the bottleneck
    const uint32_t last = nodes.GetN() - 1;

    // The rate is in IP bytes. It is raised so that the PPP header does not reduce it.
    const uint64_t wire_rate =
        o.rate.GetBitRate() * (o.packet + kPppHeader) / o.packet;
    PointToPointHelper link;
    // Without flow control a full device drops; with it, it stops the layer above.
    if (o.disc.empty()) link.DisableFlowControl();
    const uint32_t device_queue = o.disc.empty() ? o.queue : 1;
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, device_queue)));
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(wire_rate)));
    link.SetChannelAttribute("Delay", TimeValue(o.rtt / 2));
    PointToPointHelper access;
    access.DisableFlowControl();
    access.SetChannelAttribute("Delay", TimeValue(Seconds(0)));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4Address destination;
    for (uint32_t i = 0; i < last; ++i, addresses.NewNetwork()) {
      NetDeviceContainer ends = (i == near ? link : access).Install(nodes.Get(i), nodes.Get(i + 1));
      if (i == near && !o.disc.empty()) InstallDisc(ends.Get(0));
      destination = addresses.Assign(ends).GetAddress(1);
      Unlimited(ends.Get(1));
      if (i != near) Unlimited(ends.Get(0));
      if (i + 1 == near && o.loss > 0) AddLoss(ends.Get(1));
    }
    auto bottleneck = DynamicCast<PointToPointNetDevice>(nodes.Get(near)->GetDevice(o.routers > 0 ? 2 : 1));
    if (o.disc.empty()) CheckNoQueueDisc(bottleneck);
    queue_ = bottleneck->GetQueue();
    queue_->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Bench::OnQueue, this));
    if (o.routers > 0) Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    for (uint32_t i = 0; i < o.flows; ++i) AddFlow(i, nodes.Get(0), nodes.Get(last), destination);
  }

  void ConfigureTcp() {
    const uint32_t segment = o.packet - kHeaders;
    const double bdp = o.rate.GetBitRate() / 8.0 * o.rtt.GetSeconds();
    // The buffers hold several times the packets in flight, so that they never limit the window.
    const auto buffer = static_cast<uint32_t>(
        std::min(1e9, 1e6 + 8 * (bdp + static_cast<double>(o.queue) * o.packet)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + o.cc)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName("ns3::" + o.recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delack));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.iw));
    if (o.ssthresh > 0)
      Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(o.ssthresh * segment));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(o.min_rto));
    // One application write is one segment: ns-3 then never has to join or split buffers.
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(segment));
  }

  // This device only delays: it never queues and takes almost no time to send.
  static void Unlimited(Ptr<NetDevice> end) {
    auto device = DynamicCast<PointToPointNetDevice>(end);
    device->SetDataRate(DataRate("10Gbps"));
    device->GetQueue()->SetMaxSize(QueueSize("1000000p"));
  }

  void InstallDisc(Ptr<NetDevice> device) {
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::" + o.disc, "MaxSize", QueueSizeValue(QueueSize(PACKETS, o.queue)));
    disc_ = control.Install(device).Get(0);
    disc_->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Bench::OnQueue, this));
  }

  static void CheckNoQueueDisc(Ptr<NetDevice> device) {
    auto layer = device->GetNode()->GetObject<TrafficControlLayer>();
    if (layer && layer->GetRootQueueDiscOnDevice(device))
      Refuse("this ns-3 put a queue disc before the device queue: the device would not drop");
  }

  void AddLoss(Ptr<NetDevice> device) {
    auto model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(o.loss);
    device->SetAttribute("ReceiveErrorModel", PointerValue(model));
    device->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Bench::OnRandomDrop, this));
  }

  // Flows start within one RTT of each other, at random; a single flow starts at zero.
  void AddFlow(uint32_t i, Ptr<Node> sender, Ptr<Node> receiver, Ipv4Address destination) {
    const uint16_t port = kPort + i;
    const Time start = o.flows == 1 ? Seconds(0) : Seconds(start_->GetValue(0, o.rtt.GetSeconds()));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sinks_.push_back(DynamicCast<PacketSink>(sink.Install(receiver).Get(0)));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(destination, port));
    auto source = DynamicCast<BulkSendApplication>(bulk.Install(sender).Get(0));
    source->SetStartTime(start);
    // The application makes its socket when it starts, so it is watched from then on.
    Simulator::Schedule(start + NanoSeconds(1), [this, source] {
      source->GetSocket()->TraceConnectWithoutContext("RTO", MakeCallback(&Bench::OnRto, this));
      source->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&Bench::OnState, this));
    });
  }

  // The packets in the device's queue or in the queue disc.
  void OnQueue(uint32_t before, uint32_t after) {
    const double now = Simulator::Now().GetSeconds();
    counts_.queue_integral += waiting_ * (now - queue_changed_);
    queue_changed_ = now;
    waiting_ += after;
    waiting_ -= before;
  }

  void OnRandomDrop(Ptr<const Packet>) { ++counts_.random_drops; }

  // Only an expiry doubles the timer (RFC 6298 clause 5.5); an RTT sample never does so exactly.
  void OnRto(Time before, Time after) {
    if (after == before + before) ++counts_.timeouts;
  }

  void OnState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state) {
    if (state == TcpSocketState::CA_RECOVERY) ++counts_.fast_recoveries;
  }

  Counts Take() {
    const uint32_t waiting = queue_->GetNPackets();
    OnQueue(waiting, waiting);
    counts_.departed = queue_->GetTotalReceivedPackets() - waiting;
    counts_.departed_bytes =
        queue_->GetTotalReceivedBytes() - queue_->GetNBytes() - kPppHeader * counts_.departed;
    counts_.queue_drops = queue_->GetTotalDroppedPackets() + (disc_ ? disc_->GetStats().nTotalDroppedPackets : 0);
    counts_.goodput.clear();
    for (const auto& sink : sinks_) counts_.goodput.push_back(sink->GetTotalRx());
    return counts_;
  }

  void Print(Counts a, const Counts& b, double cpu, double wall) const {
    a.goodput.resize(o.flows); // no warm-up: nothing had been counted
    const double departed = b.departed - a.departed, drops = b.queue_drops - a.queue_drops;
    const double arrived = departed + drops, capacity = o.rate.GetBitRate() / 8.0 * o.seconds;
    const double random = b.random_drops - a.random_drops;
    const double waited = b.queue_integral - a.queue_integral;
    std::ostringstream goodput;
    for (uint32_t i = 0; i < o.flows; ++i)
      goodput << (i ? ", " : "") << (b.goodput[i] - a.goodput[i]) * 8e-6 / o.seconds;
    std::printf(
        "{\"simulator\": \"ns-3\", \"cc\": \"%s\", \"recovery\": \"%s\", \"delack\": %u, \"flows\": %u, "
        "\"rate_mbps\": %g, \"rtt_ms\": %g, \"queue_packets\": %u, \"disc\": \"%s\", \"packet_bytes\": %u, \"loss_random\": %g, "
        "\"min_rto_ms\": %g, \"ssthresh\": %u, \"seconds\": %g, \"warmup\": %g, \"seed\": %llu, \"routers\": %u, "
        "\"delivered_packets\": %.0f, \"utilisation\": %.5f, \"loss\": %.6f, \"random_drops\": %.0f, "
        "\"queue_mean_packets\": %.3f, \"queue_delay_mean_ms\": %.3f, \"goodput_mbps\": [%s], "
        "\"timeouts\": %llu, \"fast_recoveries\": %llu, "
        "\"run_packets\": %llu, \"cpu_s\": %.3f, \"wall_s\": %.3f, \"packets_per_cpu_s\": %.0f}\n",
        o.cc.c_str(), o.recovery.c_str(), o.delack, o.flows, o.rate.GetBitRate() * 1e-6,
        o.rtt.GetSeconds() * 1e3, o.queue, o.disc.c_str(), o.packet, o.loss,
        o.min_rto.GetSeconds() * 1e3, o.ssthresh, o.seconds, o.warmup,
        static_cast<unsigned long long>(o.seed), o.routers, departed,
        (b.departed_bytes - a.departed_bytes) / capacity, arrived > 0 ? drops / arrived : 0, random,
        waited / o.seconds,
        departed > 0 ? waited / departed * 1e3 : 0, // Little's law: time waited per packet
        goodput.str().c_str(), static_cast<unsigned long long>(b.timeouts - a.timeouts),
        static_cast<unsigned long long>(b.fast_recoveries - a.fast_recoveries),
        static_cast<unsigned long long>(b.departed), cpu, wall, b.departed / cpu);
  }

  const Options o;
  Ptr<Queue<Packet>> queue_;
  Ptr<QueueDisc> disc_;
  uint32_t waiting_ = 0; // packets, in both
  std::vector<Ptr<PacketSink>> sinks_;
  Ptr<UniformRandomVariable> start_ = CreateObject<UniformRandomVariable>();
  Counts counts_;
  double queue_changed_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(options.seed);
  Bench(options).Run();
  Simulator::Destroy();
}
