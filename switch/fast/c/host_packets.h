/* At tc's egress of a port: packets that this host itself sends by the port's interface arrive at the port too, as in
 * simple_switch, and also leave unchanged. Packets sent by a switch are recognised by their arrival at an interface. */
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static long (*bpf_clone_redirect)(struct __sk_buff *skb, unsigned int ifindex, unsigned long long flags) =
    (void *)BPF_FUNC_clone_redirect;

__attribute__((section("tc"), used)) int from_host(struct __sk_buff *packet) {
    if (!packet->ingress_ifindex)
        bpf_clone_redirect(packet, packet->ifindex, BPF_F_INGRESS);
    return TC_ACT_UNSPEC;
}
char license_text[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
