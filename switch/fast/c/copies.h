/* Copies of packets, and packets that return to the parser. They wait here, and pass one after the other after the
 * packet that came in: those for egress first, then those for the parser, as in BMv2. All of them are processed in the
 * buffer of the packet that came in. */
#pragma once

#define LEAVING 0
#define INCOMING 1
#define WAITING 16 /* of each kind */
#define NOWHERE (2 * WAITING)
#define MOST_BYTES 65536
#define MOST_TURNS 1024
#define WHOLE_LENGTH 0xffffffffu

/* Requests of actions: session and list of a clone, lists of fields for a return, and the truncated length. */
WHOLE struct {
    u32 session; /* its number plus one */
    u32 list, resubmit, recirculate, most;
} asked;

/* `group` and `port` are the destination: numbers plus one. */
WHOLE struct waiting {
    struct state state;
    u32 length, group, port, recirculate, most;
    u8 bytes[MOST_BYTES];
} waiting[2 * WAITING];
WHOLE u32 put[2], taken[2];
WHOLE u32 arrival; /* the port at which the packet arrived */

static INLINE void ask_nothing(void) {
    asked.session = asked.resubmit = asked.recirculate = 0;
    asked.most = WHOLE_LENGTH;
}
static INLINE int somebody_waits(void) { return put[LEAVING] != taken[LEAVING] || put[INCOMING] != taken[INCOMING]; }

/* The place for a packet that will wait behind `before` others without a place yet. */
static INLINE u32 place_behind(u32 kind, u32 before) {
    u32 number = put[kind] + before;
    return number - taken[kind] < WAITING ? kind * WAITING + number % WAITING : NOWHERE;
}

#define AT_PLACE(place, otherwise) \
    if (place >= NOWHERE) \
        return otherwise; \
    CHECKED(place); \
    struct waiting *one = &waiting[place]

/* Keep the packet's present bytes and its destination. */
FUNCTION int keep_packet(PACKET *packet, u64 place, u32 group, u32 port) {
    AT_PLACE(place, -1);
    u64 length = packet_length(packet);
    CHECKED(length);
    if (length == 0 || length > MOST_BYTES)
        return -1;
    take_bytes(packet, 0, one->bytes, length);
    one->length = length, one->group = group, one->port = port;
    one->recirculate = 0, one->most = WHOLE_LENGTH;
    return 0;
}

/* Restore the kept bytes in the packet being processed. */
FUNCTION int take_packet_back(PACKET *packet, u64 place) {
    AT_PLACE(place, -1);
    u64 length = one->length;
    CHECKED(length);
    if (length == 0 || length > MOST_BYTES)
        return -1;
    return replace_all(packet, one->bytes, length);
}

/* Send a copy, truncated as actions have requested. */
FUNCTION int deliver(PACKET *packet, u32 port) {
    if (asked.most >= packet_length(packet))
        return send_copy(packet, port), 0;
    return send_short(packet, port, asked.most);
}
