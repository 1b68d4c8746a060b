/* Copies of packets, and packets that come in again. They wait here, and pass one after the other once the packet that
 * came in has: those for egress first, then those for the parser, as in BMv2. The packet at work is the bench for all.
 */
#pragma once

#define LEAVING 0
#define INCOMING 1
#define WAITING 16 /* of each kind */
#define NOWHERE (2 * WAITING)
#define MOST_BYTES 65536
#define MOST_TURNS 1024
#define WHOLE_LENGTH 0xffffffffu

/* The requests of actions: session and list of a clone, lists of fields to return with, most bytes to leave with. */
WHOLE struct {
    u32 session; /* its number plus one */
    u32 list, resubmit, recirculate, most;
} asked;

/* `group` and `port` are where it is sent: numbers plus one. */
WHOLE struct waiting {
    struct state state;
    u32 length, group, port, recirculate, most;
    u8 bytes[MOST_BYTES];
} waiting[2 * WAITING];
WHOLE u32 put[2], taken[2];
WHOLE u32 arrival; /* the port by which the packet came in */

static INLINE void ask_nothing(void) {
    asked.session = asked.resubmit = asked.recirculate = 0;
    asked.most = WHOLE_LENGTH;
}
static INLINE int somebody_waits(void) { return put[LEAVING] != taken[LEAVING] || put[INCOMING] != taken[INCOMING]; }

/* The place of the packet that is to wait behind `before` others which have no place yet. */
static INLINE u32 place_behind(u32 kind, u32 before) {
    u32 number = put[kind] + before;
    return number - taken[kind] < WAITING ? kind * WAITING + number % WAITING : NOWHERE;
}

#define AT_PLACE(place, otherwise) \
    if (place >= NOWHERE) \
        return otherwise; \
    CHECKED(place); \
    struct waiting *one = &waiting[place]

/* Keep the packet's bytes as they are now, and where it is to be sent. */
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

/* Give the packet at work the bytes that were kept. */
FUNCTION int take_packet_back(PACKET *packet, u64 place) {
    AT_PLACE(place, -1);
    u64 length = one->length;
    CHECKED(length);
    if (length == 0 || length > MOST_BYTES)
        return -1;
    return replace_all(packet, one->bytes, length);
}

/* Let a copy leave; of it, as many bytes as actions have said. */
FUNCTION int deliver(PACKET *packet, u32 port) {
    if (asked.most >= packet_length(packet))
        return send_copy(packet, port), 0;
    return send_short(packet, port, asked.most);
}
