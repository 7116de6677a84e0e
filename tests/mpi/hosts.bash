# SPDX-License-Identifier: MIT
#
# Hosts that are network namespaces of this machine, for programs of several ranks: to be sourced. Needs
# root, and ip of iproute2. Host n has the address 198.18.0.(n+1), of the range that is meant for
# benchmarks, on a link to a switch, which is a namespace too; nothing of it is visible outside of them.
#
#      hosts_missing        prints why there can be none here; nothing if there can be
#      hosts_up COUNT       makes them; hosts_down removes everything, and is called at exit
#      hosts_run MPI RANKS SECONDS PROGRAM [ARGUMENT...]    as mpi_job.sh, rank n on host n
#      hosts_cut N          a command that takes the link of host n down
#      hosts_rate RATE      limits what every host sends, as "1gbit"
hosts_prefix=mha-$$
hosts_count=0
hosts_agent=

hosts_missing() {
    local why
    [ "$(id -u)" -eq 0 ] || { echo "no root"; return; }
    command -v ip >/dev/null || { echo "no ip (iproute2)"; return; }
    why=$(ip netns add "$hosts_prefix-try" 2>&1) || { echo "no namespaces: $why"; return; }
    why=$(ip -n "$hosts_prefix-try" link add name a type veth peer name b 2>&1) || echo "no veth: $why"
    ip netns del "$hosts_prefix-try"
}

hosts_down() {
    local name
    for name in $(ip netns list 2>/dev/null | awk '{ print $1 }' | grep -E "^$hosts_prefix-"); do
        ip netns del "$name"
    done
    [ -z "$hosts_agent" ] || rm -f "$hosts_agent"
}

hosts_up() {
    local n switch=$hosts_prefix-switch
    hosts_count=$1
    trap hosts_down EXIT
    # What mpirun calls in place of ssh: [-x] HOST COMMAND...; the name of a host is its address.
    hosts_agent=$(mktemp)
    cat >"$hosts_agent" <<END
#!/bin/sh
[ "\$1" != -x ] || shift
host=\$1
shift
exec ip netns exec $hosts_prefix-\${host##*.} unshare -u sh -c 'hostname "\$0"; exec sh -c "\$1"' "\$host" "\$*"
END
    chmod +x "$hosts_agent"
    ip netns add "$switch" && ip -n "$switch" link add name bridge type bridge &&
        ip -n "$switch" link set bridge up || return 1
    for ((n = 1; n <= hosts_count; n++)); do
        ip netns add "$hosts_prefix-$n" &&
            ip -n "$switch" link add name "port$n" type veth peer name wire netns "$hosts_prefix-$n" &&
            ip -n "$switch" link set "port$n" master bridge up &&
            ip -n "$hosts_prefix-$n" addr add "198.18.0.$n/24" dev wire &&
            ip -n "$hosts_prefix-$n" link set lo up && ip -n "$hosts_prefix-$n" link set wire up || return 1
    done
}

hosts_rate() {
    local n
    for ((n = 1; n <= hosts_count; n++)); do
        tc -n "$hosts_prefix-$n" qdisc replace dev wire root tbf rate "$1" burst 256kb latency 50ms || return 1
    done
}

hosts_cut() {
    echo "ip -n $hosts_prefix-switch link set port$(($1 + 1)) down"
}

hosts_run() {
    local mpi=$1 ranks=$2 n list="" word line=""
    for ((n = 1; n <= ranks; n++)); do
        list+=${list:+,}198.18.0.$n
        [ "$mpi" = mpich ] || list+=:1
    done
    case $mpi in
    openmpi) export MPI_JOB_FLAGS="${HOSTS_FLAGS-} --mca plm_rsh_agent $hosts_agent --host $list" ;;
    mpich) export MPI_JOB_FLAGS="${HOSTS_FLAGS-} -launcher ssh -launcher-exec $hosts_agent -hosts $list" ;;
    esac
    for word in "$(dirname "${BASH_SOURCE[0]}")/mpi_job.sh" "$@"; do
        line+="$(printf %q "$word") "
    done
    UCX_TLS=tcp,self "$hosts_agent" 198.18.0.1 "$line"
}
