#!/bin/busybox sh
# The first process of a virtual machine that scripts/kernels.py boots. It tries each controller.
# It writes its findings to the second serial port, one in a line: the controller, the kind, and the
# value, with tabs between.
export PATH=/usr/bin:/bin
SECONDS_OF_FLOW=8
# The guard may trip on a slow machine. Cubic then has the flow for 10 s, or for 20 s.
SECONDS_OF_LONG_FLOW=45
PATIENCE=40
# Patterns in an agent's status: a flow, and a flow that the policy controls, with decisions.
HAS_FLOW='"local":'
DECIDES='"decisions":[1-9].*"guard":"policy"'
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

# These programs are not those of busybox.
ip() {
	/usr/bin/ip "$@"
}

say() {
	printf '%s\t%s\t%s\n' "$what" "$1" "$(echo "$2" | tr -d '\n\t')" >&3
}

# The controllers that sockets can choose. After an agent has ended, none is ours.
say_available() {
	say "$1" "$(cat $AVAILABLE)"
}

# The objects that stay after their agent: the controller, and the pins.
say_left() {
	say_available "available $1"
	say "pins $1" "$(echo $(find /sys/fs/bpf/headway))"
}

# Runs a connection over the path, in a cgroup. Its figures go to /tmp/flow.
start_flow() {
	(
		echo 0 >/cgroup/some/cgroup.procs
		exec iperf3 -c 10.0.0.2 -t $SECONDS_OF_FLOW --interval 0.1 --json "$@" >/tmp/flow
	) &
	flow=$!
}

# Whether an agent with these options serves. Otherwise its output goes to /tmp/log.
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

# Whether an agent with these options serves. If not, the refusal is the only finding.
is_accepted() {
	start_agent "$@" && return 0
	say refused "$(cat /tmp/log)"
	kill -9 $agent 2>/dev/null
	return 1
}

end_agent() {
	kill $agent
	wait $agent
}

kill_agent() {
	kill -9 $agent
	wait $agent
}

# Reads the agent's status until it matches, or the flow has ended. The status is in /tmp/status.
await() {
	while :; do
		headwayd status --json >/tmp/status
		grep -q "$1" /tmp/status && break
		kill -0 $flow || break
		sleep 0.5
	done
}

# Runs a trial with the name $1, the controller $2, and a flow chosen by $3. The other arguments are
# options for headwayd.
try() {
	what=$1 name=$2 choice=$3
	shift 3
	# Otherwise the controller stays after its agent, and disturbs the next trial.
	set -- --no-keep "$@"
	is_accepted "$@" || return
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
	end_agent
	say ended $?
	say_available after_term

	# The agent is killed during a flow, and another one starts.
	start_agent "$@"
	start_flow $choice
	await "$HAS_FLOW"
	sleep 1
	kill_agent
	# Since Linux 6.4 the kernel closes its link, in the background.
	for i in $(seq 30); do
		grep -qw $name $AVAILABLE || break
		sleep 0.1
	done
	say_available after_kill
	start_agent "$@"
	say again "$(cat /tmp/ready /tmp/log)"
	wait $flow
	say flow_of_killed "$(cat /tmp/flow)"
	end_agent
	say_available after_again
}

# Writes the exit code and the output of a command.
say_unload() {
	said=$(headwayd unload 2>&1)
	say "unload $1" "$? $said"
	say_left "unload $1"
}

# The programs stay after an agent that is killed during a flow. The next agent adopts them, and
# `headwayd unload` removes them. Before Linux 6.4 nothing is pinned.
try_pinned() {
	what="headway_owl, pinned"
	is_accepted --policy owl || return
	say log "$(cat /tmp/log)"
	start_flow -C headway_owl -t $SECONDS_OF_LONG_FLOW
	await "$DECIDES"
	say served "$(cat /tmp/status)"
	headwayd run --socket /tmp/another --policy owl 2>/tmp/log
	say another "$(cat /tmp/log)"
	kill_agent
	say_left kill
	start_agent --policy owl
	say again "$(cat /tmp/ready /tmp/log)"
	await "$DECIDES"
	say adopted "$(cat /tmp/status)"
	wait $flow
	say flow "$(cat /tmp/flow)"
	end_agent
	say ended $?
	say_left term
	say_unload term

	start_agent --policy owl
	kill_agent
	say_unload kill
}

if ! grep -qw bbr $AVAILABLE; then
	what="headway_bbr, no tcp_bbr"
	start_agent --no-keep --controllers headway_bbr && kill $agent
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
try_pinned
what=kernel
say complaints "$(dmesg | grep -E 'WARNING:|BUG:|Oops:')"
say end ""
sync
poweroff -f
