/* The kernel's side of runtime.h: a tc program on the ingress of each of the switch's ports. */
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

static u64 (*clock_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static u32 (*bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_redirect)(u32 ifindex, u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_clone_redirect)(struct __sk_buff *skb, u32 ifindex, u64 flags) = (void *)BPF_FUNC_clone_redirect;
static long (*bpf_skb_pull_data)(struct __sk_buff *skb, u32 length) = (void *)BPF_FUNC_skb_pull_data;
static long (*bpf_skb_vlan_pop)(struct __sk_buff *skb) = (void *)BPF_FUNC_skb_vlan_pop;
static long (*bpf_skb_change_head)(struct __sk_buff *skb, u32 length, u64 flags) = (void *)BPF_FUNC_skb_change_head;
static long (*bpf_skb_change_tail)(struct __sk_buff *skb, u32 length, u64 flags) = (void *)BPF_FUNC_skb_change_tail;
static long (*bpf_skb_load_bytes)(const void *skb, u32 from, void *to, u32 length) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_skb_store_bytes)(struct __sk_buff *skb, u32 to, const void *from, u32 length, u64 flags) =
    (void *)BPF_FUNC_skb_store_bytes;

#define PACKET struct __sk_buff
#define DECLARE_MEMORY SEC(".bss.memory") struct memory memory;
#define own (&memory) /* the state of the switch: in the kernel there is only one */

/* Entries are allocated on insertion: tables are large in the P4 program and mostly empty. */
#define TABLE(symbol, key_type, entry_type, size) \
    struct { \
        __uint(type, BPF_MAP_TYPE_HASH); \
        __uint(map_flags, BPF_F_NO_PREALLOC); \
        __uint(max_entries, size); \
        __type(key, key_type); \
        __type(value, entry_type); \
    } symbol SEC(".maps");

#define TABLE_OF(symbol) (&symbol)
#define table_find(table, key) bpf_map_lookup_elem(table, key)

static INLINE u8 *packet_data(PACKET *packet) { return (u8 *)(long)packet->data; }
static INLINE u8 *packet_end(PACKET *packet) { return (u8 *)(long)packet->data_end; }
static INLINE u32 packet_length(PACKET *packet) { return packet->len; }

/* `count` existing bytes of the packet; a constant bounds their number. */
static INLINE void take_bytes(PACKET *packet, u32 from, u8 *to, u64 count) {
    if (count)
        bpf_skb_load_bytes(packet, from, to, count);
}

static INLINE u64 random_word(u64 *state) { return (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32(); }

static INLINE int drop(PACKET *packet) { return TC_ACT_SHOT; }

#define ifindex_of(port) ((port) < sizeof own->ports / sizeof *own->ports ? own->ports[port].ifindex : 0)
#define send(packet, port) send_by(packet, ifindex_of(port))
#define send_copy(packet, port) send_copy_by(packet, ifindex_of(port))

/* Packets to a port without a link are lost. */
static INLINE int send_by(PACKET *packet, u32 ifindex) { return ifindex ? bpf_redirect(ifindex, 0) : TC_ACT_SHOT; }
static INLINE void send_copy_by(PACKET *packet, u32 ifindex) {
    if (ifindex)
        bpf_clone_redirect(packet, ifindex, 0);
}

#ifdef COPIES
static INLINE int replace_all(PACKET *packet, const u8 *bytes, u64 length) {
    if (packet->len != length && bpf_skb_change_tail(packet, length, 0))
        return -1;
    return bpf_skb_store_bytes(packet, 0, bytes, length, 0);
}

static INLINE int shorten(PACKET *packet, u32 most) {
    return most < packet->len ? bpf_skb_change_tail(packet, most, 0) : 0;
}

/* Send the first bytes of the packet, which stays unchanged. */
#define MOST_CUT 65536
WHOLE u8 uncut[MOST_CUT];
#define send_short(packet, port, most) send_short_by(packet, ifindex_of(port), most)
FUNCTION int send_short_by(PACKET *packet, u32 ifindex, u32 most) {
    u64 length = packet->len;
    CHECKED(length);
    if (length == 0 || length > MOST_CUT || bpf_skb_load_bytes(packet, 0, uncut, length))
        return -1;
    if (bpf_skb_change_tail(packet, most, 0))
        return -1;
    send_copy_by(packet, ifindex);
    return replace_all(packet, uncut, length);
}
#endif

#ifdef HEAD_BYTES
#define CHUNK 1024 /* bytes of payload moved at once */
#define CHUNKS 64
WHOLE u8 head[HEAD_BYTES];
WHOLE u8 chunk[CHUNK];

/* Move chunk `number` of the `length` bytes after the first `from` to the bytes after the first `to`; when moving
 * towards the packet's end, the last chunk is first. Returns 1 for the last chunk, a negative number on failure. */
FUNCTION int move_chunk(PACKET *packet, u32 from, u32 to, u32 length, u32 number) {
    u32 last = length / CHUNK, at = (from < to ? last - number : number) * CHUNK;
    u64 count = length - at < CHUNK ? length - at : CHUNK;
    CHECKED(count);
    if (count > 0 && count <= CHUNK)
        if (bpf_skb_load_bytes(packet, from + at, chunk, count) || bpf_skb_store_bytes(packet, to + at, chunk, count, 0))
            return -1;
    return number == last;
}

static INLINE int move_payload(PACKET *packet, u32 from, u32 to, u32 length) {
    int moved = 0;
    for (u32 i = 0; i < CHUNKS && !moved; i++)
        moved = move_chunk(packet, from, to, length, i);
    return moved <= 0; /* also if there are more than CHUNKS */
}

/* Replace the first `parsed` bytes of the packet by the first `length` bytes of `head`. */
FUNCTION int replace_head(PACKET *packet, u32 parsed, u32 length) {
    u32 all = packet->len, payload = all - parsed;
    if (parsed > all || length > HEAD_BYTES)
        return -1;
    if (length > parsed && bpf_skb_change_tail(packet, all + length - parsed, 0))
        return -1;
    if (length != parsed && move_payload(packet, parsed, length, payload))
        return -1;
    if (length < parsed && bpf_skb_change_tail(packet, length + payload, 0))
        return -1;
    return length && bpf_skb_store_bytes(packet, 0, head, length, 0);
}

#ifdef HASHED_BYTES
FUNCTION u64 chunk_sum(PACKET *packet, u32 from, u32 length) {
    if (length == 0 || length > CHUNK || bpf_skb_load_bytes(packet, from, chunk, length))
        return 0;
    return sum16(chunk, length, CHUNK);
}

/* The sum of all 16-bit words after the first `from` bytes. */
static INLINE u64 payload_sum(PACKET *packet, u32 from) {
    u64 sum = 0;
    for (u32 i = 0; i < CHUNKS && from < packet->len; i++, from += CHUNK)
        sum += chunk_sum(packet, from, packet->len - from < CHUNK ? packet->len - from : CHUNK);
    return sum;
}
#endif
#endif

/* The kernel has removed the outer VLAN tag from the bytes, and removes the next one when that is popped; the program
 * has to see the packet as on the wire. A frame with more tags than this is dropped. */
#define MAX_TAGS 8

FUNCTION int insert_tag(PACKET *packet, u32 type, u32 tag) {
    if (bpf_skb_change_head(packet, 4, 0))
        return -1;
    u8 *data = packet_data(packet);
    if (data + 18 > packet_end(packet))
        return -1;
    for (u32 i = 0; i < 12; i++)
        data[i] = data[i + 4];
    AT(u16, data + 12) = (u16)type;
    store_2(data + 14, tag);
    return 0;
}

static INLINE int restore_tags(PACKET *packet) {
    u32 types[MAX_TAGS] = {}, tags[MAX_TAGS] = {};
    u32 count = 0;
#pragma unroll
    for (u32 i = 0; i < MAX_TAGS; i++)
        if (packet->vlan_present) {
            types[i] = packet->vlan_proto, tags[i] = packet->vlan_tci;
            bpf_skb_vlan_pop(packet); /* fails when half a tag follows, which stays in the bytes */
            count++;
        }
    int failed = packet->vlan_present;
#pragma unroll
    for (u32 i = MAX_TAGS; i-- > 0;)
        if (i < count && !failed)
            failed = insert_tag(packet, types[i], tags[i]);
    return failed;
}

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 512);
    __type(key, u32);
    __type(value, u32);
} port_of_ifindex SEC(".maps");

/* The port's number, or PORTS; interfaces whose indexes share a place are also in the map. */
#define port_of(index) port_of_arrival(index, &own->arrivals[(index) % (sizeof own->arrivals / 8)].ifindex)
static INLINE u32 port_of_arrival(u32 ifindex, const u32 *arrival) {
    if (arrival[0] == ifindex)
        return arrival[1];
    const u32 *port = bpf_map_lookup_elem(&port_of_ifindex, &ifindex);
    return port ? *port : PORTS;
}

#define ENTRY(parsed_bytes) \
    SEC("tc") int from_port(PACKET *packet) { \
        u32 port = port_of(packet->ifindex); \
        if (port >= PORTS || (packet->vlan_present && restore_tags(packet))) \
            return TC_ACT_SHOT; \
        if (packet_data(packet) + parsed_bytes > packet_end(packet)) \
            bpf_skb_pull_data(packet, packet->len < parsed_bytes ? packet->len : parsed_bytes); \
        return receive(packet, port); \
    } \
    char license_text[] SEC("license") = "Dual BSD/GPL";
