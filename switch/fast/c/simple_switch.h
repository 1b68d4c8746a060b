/* The path of a packet through the switch, as in BMv2's simple_switch. The generator writes the program's own parts in
 * front of this file: `parse`, `deparse`, both pipelines, names of metadata (META_..., SET_...), and functions that
 * clear, save and restore parts of the state. */
#pragma once

#ifdef LOST
static INLINE int lose(void) { return own->LOST[0].packets++, 0; }
#else
static INLINE int lose(void) { return 0; }
#endif

#ifdef HEAD_BYTES
#define CURRENT_LENGTH state.current_length /* of the packet if it left now */
#else
#define CURRENT_LENGTH state.length
#endif

/* Before the parser no header is valid. */
static INLINE void begin(PACKET *packet) {
    __builtin_memset(&state.valid, 0, sizeof state.valid);
#ifdef IN_PLACE
    __builtin_memset(&state.dirty, 0, sizeof state.dirty);
#endif
#ifdef MOVING
    state.moved = 0;
#endif
    state.length = packet_length(packet);
#ifdef HEAD_BYTES
    state.head = 0, state.current_length = state.length;
#endif
#ifdef DIGESTS
    state.digest = 0;
#endif
}

/* Start a packet that arrives at a port: all metadata is 0. */
static INLINE void reset(PACKET *packet, u32 port) {
    clear_metadata();
    begin(packet);
#ifdef CLAIMS
    state.failed = 0;
#endif
    SET_INGRESS_PORT(port);
    SET_PACKET_LENGTH(state.length);
    SET_INGRESS_GLOBAL_TIMESTAMP(MICROSECONDS);
}

#ifdef COPIES
#include "passes.h"
#endif

/* Run egress and deparser for one packet; returns 1 if it leaves by `port`. No packet waits in a queue, so queue depths
 * and times are 0. Reading the clock takes as long as a table lookup: if only actions need it, the first reads it. */
FUNCTION int egress_of(PACKET *packet, u32 port, u32 copy) {
    TAKEN(packet);
    TAKEN(port);
    TAKEN(copy);
    SET_EGRESS_PORT(port);
    SET_EGRESS_RID(copy);
    SET_ENQ_TIMESTAMP(MICROSECONDS);
    SET_EGRESS_GLOBAL_TIMESTAMP(LATE_CLOCK ? 0 : MICROSECONDS);
    SET_EGRESS_SPEC(DROP_PORT + 1); /* as in simple_switch */
    SET_PACKET_LENGTH(CURRENT_LENGTH);
    EGRESS();
#ifdef COPIES
    if (asked.session)
        clone_egress(packet);
#endif
    if (META_EGRESS_SPEC == DROP_PORT)
        return 0;
#ifdef CLAIMS
    if (state.failed)
        return 0;
#endif
    if (deparse(packet))
        return lose();
#ifdef COPIES
    if (asked.recirculate)
        return come_in_again(packet, asked.recirculate, RECIRCULATED);
#endif
    return 1;
}

#ifndef COPIES
/* Send a copy of the packet for each member of a group; the packet itself is the last one. */
static INLINE int replicate(PACKET *packet, u32 number) {
    const struct key_groups key = {{number}};
    const struct entry_groups *group = find_groups(&key);
    if (!group || META_PRIORITY)
        return drop(packet);
    SET_INSTANCE_TYPE(REPLICATED);
    save();
    for (u32 i = 0; i < MAX_REPLICAS && i < group->count; i++) {
        restore();
        u32 port = group->replicas[i].port;
        int leaves = egress_of(packet, port, group->replicas[i].copy);
        if (i + 1 >= group->count)
            return leaves ? send(packet, port) : drop(packet);
        if (leaves)
            send_copy(packet, port);
    }
    return drop(packet);
}

/* The whole path of a packet: a multicast group takes precedence over the drop port, and that over a port. */
static INLINE int receive(PACKET *packet, u32 port) {
    reset(packet, port);
    parse(packet);
    INGRESS();
    learn();
    u32 group = META_MCAST_GRP, spec = META_EGRESS_SPEC;
    if (group)
        return replicate(packet, group);
    if (spec == DROP_PORT || spec >= PORTS)
        return drop(packet);
    CHECKED(spec);
    SET_INSTANCE_TYPE(NORMAL);
    if (META_PRIORITY) /* simple_switch has one queue per port; a packet of another priority is lost */
        return drop(packet);
    return egress_of(packet, spec, META_EGRESS_RID) ? send(packet, spec) : drop(packet);
}
#endif
