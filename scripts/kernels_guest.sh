#!/bin/busybox sh
# The first process of a virtual machine that scripts/kernels.py boots. It tries each controller,
# and writes what it finds to the second serial port, a line each: which controller, what, and the
# value, with tabs between.
export PATH=/usr/bin:/bin
SECONDS_OF_FLOW=8
PATIENCE=40
AVAILABLE=/proc/sys/net/ipv4/tcp_available_congestion_control

/bin/busybox --install -s /bin
mkdir -p /proc /sys /run /tmp /dev /cgroup
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /cgroup
mkdir /cgroup/some
stty -F /dev/ttyS1 raw
exec 3>/dev/ttyS1 </dev/null >/dev/console 2>&1

# Not busybox's.
ip() {
	/usr/bin/ip "$@"
}

say() {
	printf '%s\t%s\t%s\n' "$what" "$1" "$(echo "$2" | tr -d '\n\t')" >&3
}

# What sockets may choose: after an agent has ended, nothing of ours.
say_available() {
	say "$1" "$(cat $AVAILABLE)"
}

# A connection over the path, in a cgroup, whose figures go to /tmp/flow.
start_flow() {
	(
		echo 0 >/cgroup/some/cgroup.procs
		exec iperf3 -c 10.0.0.2 -t $SECONDS_OF_FLOW --interval 0.1 --json "$@" >/tmp/flow
	) &
	flow=$!
}

# Whether an agent with these options serves; else what it says goes to /tmp/log.
start_agent() {
	rm -f /tmp/ready
	headwayd run "$@" </dev/null >/tmp/ready 2>/tmp/log &
	agent=$!
	for i in $(seq $((PATIENCE * 10))); do
		[ -s /tmp/ready ] && return 0
		kill -0 $agent 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

# What is tried is called $1, its controller $2, in a flow chosen by $3; the rest are options for
# headwayd.
try() {
	what=$1 name=$2 choice=$3
	shift 3
	if ! start_agent "$@"; then
		say refused "$(cat /tmp/log)"
		kill -9 $agent 2>/dev/null
		return
	fi
	start_flow $choice
	sleep 0.5
	say early "$(headwayd status --json)"
	[ $name = headway_bbr ] && headwayd set all btlbw_window=4 rtprop_window=500ms
	sleep 3
	say status "$(headwayd status --json)"
	headwayd run --socket /tmp/another "$@" 2>/tmp/log
	say another "$(cat /tmp/log)"
	wait $flow
	say flow "$(cat /tmp/flow)"
	kill $agent
	wait $agent
	say ended $?
	say_available after_term

	# Killed amid a flow, and another one in its place.
	start_agent "$@"
	start_flow $choice
	sleep 1
	kill -9 $agent
	wait $agent
	sleep 0.5
	say_available after_kill
	start_agent "$@"
	say again "$(cat /tmp/ready /tmp/log)"
	wait $flow
	say flow_of_killed "$(cat /tmp/flow)"
	kill $agent
	wait $agent
	say_available after_again
}

if ! grep -qw bbr $AVAILABLE; then
	what="headway_bbr, no tcp_bbr"
	start_agent --controllers headway_bbr && kill $agent
	say refused "$(cat /tmp/log)"
fi
for module in /modules/*; do
	insmod $module
done
ip link set lo up
ip netns add far
ip link add near type veth peer name far netns far
ip address add 10.0.0.1/24 dev near
ip link set near up
ip netns exec far ip address add 10.0.0.2/24 dev far
ip netns exec far ip link set far up
/usr/bin/tc qdisc add dev near root netem rate 40mbit delay 20ms limit 200
ip netns exec far iperf3 -s >/dev/null &
sleep 1

what=kernel
say release "$(uname -r)"
what=cubic
start_flow -C cubic
wait $flow
say flow "$(cat /tmp/flow)"
try headway_owl headway_owl "-C headway_owl" --policy owl
try "headway_owl, cgroup" headway_owl "" --policy owl --cgroup /cgroup/some
try headway_rate headway_rate "-C headway_rate" --policy aurora
try "headway_rate, int8" headway_rate "-C headway_rate" --policy learned:model=/model
try headway_window headway_window "-C headway_window" --policy owl --controllers headway_window
try headway_bbr headway_bbr "-C headway_bbr" --controllers headway_bbr
what=kernel
say complaints "$(dmesg | grep -E 'WARNING:|BUG:|Oops:')"
say end ""
sync
poweroff -f
