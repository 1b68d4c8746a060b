/* The passes of packets through a switch whose program copies packets or returns them to the parser. `waiting` of
 * copies.h holds the waiting packets, each with the state for its next pass. In front of this file the generator writes
 * functions that keep and restore parts of the state. */
#pragma once

FUNCTION int egress_of(PACKET *packet, u32 port, u32 copy);

/* The mirror session that an action requested; clears the request. */
static INLINE const struct mirror *mirror_of(void) {
    u64 number = asked.session;
    asked.session = 0;
    CHECKED(number);
    if (number > 0 && number <= SESSIONS) {
        CHECKED(number);
        const struct mirror *found = &own->MIRROR_SESSIONS[number - 1];
        if (found->group || found->port)
            return found;
    }
    return 0;
}

/* Queue the packet in its present state for the parser, with the fields of a list. */
FUNCTION int come_in_again(PACKET *packet, u32 list, u32 kind) {
    u32 place = place_behind(INCOMING, 0);
    if (place == NOWHERE || keep_packet(packet, place, 0, 0))
        return lose();
    keep_fields(place, list, kind);
    put[INCOMING]++;
    return 0;
}

/* Queue a copy of the packet in its present state for egress. */
FUNCTION int clone_egress(PACKET *packet) {
    const struct mirror *mirror = mirror_of();
    if (!mirror)
        return 0;
    u32 place = place_behind(LEAVING, 0);
    if (place == NOWHERE || keep_packet(packet, place, mirror->group, mirror->port))
        return lose();
    keep_headers(place);
    keep_fields(place, asked.list, EGRESS_CLONE);
    put[LEAVING]++;
    return 0;
}

static INLINE int leave_by(PACKET *packet, u32 port, u32 copy) {
    return egress_of(packet, port, copy) && deliver(packet, port) ? lose() : 0;
}

/* Send a copy for each member of a group; returns the number of the last one. */
FUNCTION int replicate(PACKET *packet, u32 number) {
    const struct key_groups key = {{number}};
    const struct entry_groups *group = find_groups(&key);
    u32 copy = META_EGRESS_RID;
    if (!group || META_PRIORITY)
        return copy;
    save();
    for (u32 i = 0; i < MAX_REPLICAS && i < group->count; i++) {
        restore();
        copy = group->replicas[i].copy;
        ask_nothing();
        leave_by(packet, group->replicas[i].port, copy);
    }
    return copy;
}

static INLINE int take(PACKET *packet, u64 place) {
    return take_packet_back(packet, place) || take_metadata(place) || take_headers(place);
}

/* Run egress for a packet that has waited for it, to a group and to a port. */
FUNCTION int leave(PACKET *packet, u64 place) {
    AT_PLACE(place, -1);
    u32 group = one->group, port = one->port;
    if (take(packet, place))
        return lose();
    u32 copy = META_EGRESS_RID;
    if (group) {
        copy = replicate(packet, group - 1);
        if (port && take(packet, place))
            return lose();
    }
    if (!port || META_PRIORITY)
        return 0;
    ask_nothing();
    asked.recirculate = one->recirculate, asked.most = one->most;
    return leave_by(packet, port - 1, copy);
}

/* The headers of the packet as it came in, for its clone. */
FUNCTION int parse_again(PACKET *packet) {
    clear_metadata();
    begin(packet);
    SET_INGRESS_PORT(arrival);
    parse(packet);
    return 0;
}

static INLINE int keep_state(PACKET *packet, u64 place, u32 group, u32 port) {
    if (keep_packet(packet, place, group, port))
        return -1;
    AT_PLACE(place, -1);
    one->recirculate = asked.recirculate, one->most = asked.most;
    return keep_metadata(place) || keep_headers(place);
}

/* Queue the packet after its ingress, and in front of it its clone: the packet as it came in, parsed again. */
FUNCTION int set_aside(PACKET *packet, u32 group, u32 port) {
    const struct mirror *mirror = mirror_of();
    u32 clones = mirror != 0;
    u32 to_group = mirror ? mirror->group : 0, to_port = mirror ? mirror->port : 0;
    if (asked.resubmit)
        come_in_again(packet, asked.resubmit, RESUBMITTED);
    u32 place = place_behind(LEAVING, clones), packets = !asked.resubmit && (group || port);
    if (packets && (place == NOWHERE || keep_state(packet, place, group, port)))
        packets = 0, lose();
    if (clones) {
        place = place_behind(LEAVING, 0);
        if (place == NOWHERE || keep_packet(packet, place, to_group, to_port))
            return lose();
        keep_fields(place, asked.list, INGRESS_CLONE);
        parse_again(packet);
        keep_headers(place);
    }
    put[LEAVING] += clones + packets;
    return 0;
}

/* Run parser, ingress and egress for a packet. A packet to be cloned or returned to the parser waits. */
FUNCTION int pass(PACKET *packet) {
    parse(packet);
    INGRESS();
    learn();
    u32 group = META_MCAST_GRP, spec = META_EGRESS_SPEC;
    int leaves = spec != DROP_PORT && spec < PORTS;
    SET_INSTANCE_TYPE(group ? REPLICATED : NORMAL);
    if (asked.session || asked.resubmit) {
        set_aside(packet, group ? group + 1 : 0, !group && leaves ? spec + 1 : 0);
        return drop(packet);
    }
    if (group) {
        replicate(packet, group);
        return drop(packet);
    }
    if (!leaves || META_PRIORITY)
        return drop(packet);
    CHECKED(spec);
    if (!egress_of(packet, spec, META_EGRESS_RID))
        return drop(packet);
    if (!somebody_waits() && !shorten(packet, asked.most))
        return send(packet, spec);
    if (!somebody_waits() || deliver(packet, spec))
        lose();
    return drop(packet);
}

/* Process the next waiting packet. */
FUNCTION int turn(PACKET *packet) {
    u32 kind = put[LEAVING] != taken[LEAVING] ? LEAVING : INCOMING;
    u64 place = kind * WAITING + taken[kind] % WAITING;
    if (kind == LEAVING) {
        leave(packet, place);
    } else if (take_packet_back(packet, place) || take_metadata(place)) {
        lose();
    } else {
        ask_nothing();
        begin(packet);
        SET_PACKET_LENGTH(state.length);
        pass(packet);
    }
    taken[kind]++;
    return 0;
}

/* Process the packet that came in, then its waiting copies one after the other. */
static INLINE int receive(PACKET *packet, u32 port) {
    reset(packet, port);
    arrival = port;
    ask_nothing();
    int verdict = pass(packet);
    for (u32 i = 0; i < MOST_TURNS && somebody_waits(); i++)
        turn(packet);
    if (somebody_waits())
        taken[LEAVING] = put[LEAVING], taken[INCOMING] = put[INCOMING], lose();
    return verdict;
}
