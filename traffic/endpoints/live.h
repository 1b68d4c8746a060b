/* Endpoints in real time: packets come in rings of packet sockets, and wait in the outbox of their host to be sent. */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#define OURS 1 /* TP_STATUS_USER: the kernel has filled the slot; 0 gives it back */
#define BATCH 1024
#define FRAME_ROOM (HEAD_BYTES + 4 * VALUES)

/* A host's packets that wait to be sent: `count` of them, of which `sent` have left. */
struct outbox {
    u64 frames, lengths;
    u64 count, sent, room;
};

/* Put a packet into the outbox of a host: the function by which endpoints send. */
void outbox_put(void *context, u32 way, const u8 *bytes, u32 length) {
    struct outbox *box = &((struct outbox *)context)[way];
    if (box->count == box->room) {
        box->room = 2 * box->room + 256;
        box->frames = (u64)realloc((void *)box->frames, box->room * FRAME_ROOM);
        box->lengths = (u64)realloc((void *)box->lengths, box->room * sizeof(u32));
        if (!box->frames || !box->lengths)
            abort();
    }
    memcpy((u8 *)box->frames + box->count * FRAME_ROOM, bytes, length);
    ((u32 *)box->lengths)[box->count++] = length;
}

/* Send up to `most` packets of an outbox; returns how many the kernel took, or -errno if it failed. `full` becomes 1 if a
 * full queue refused the next one. */
int outbox_flush(struct outbox *box, int descriptor, u32 most, u32 *full) {
    struct mmsghdr headers[BATCH];
    struct iovec vectors[BATCH];
    u32 taken = 0, count = box->count - box->sent < most ? box->count - box->sent : most;
    count = count < BATCH ? count : BATCH;
    memset(headers, 0, count * sizeof *headers);
    for (u32 i = 0; i < count; i++) {
        vectors[i].iov_base = (u8 *)box->frames + (box->sent + i) * FRAME_ROOM;
        vectors[i].iov_len = ((u32 *)box->lengths)[box->sent + i];
        headers[i].msg_hdr.msg_iov = &vectors[i], headers[i].msg_hdr.msg_iovlen = 1;
    }
    *full = 0;
    while (taken < count) { /* a call that takes fewer does not say why: ask again */
        int sent = sendmmsg(descriptor, headers + taken, count - taken, MSG_DONTWAIT);
        if (sent < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (sent < 0) {
            *full = errno == ENOBUFS;
            break;
        }
        taken += sent;
    }
    box->sent += taken;
    if (box->sent == box->count)
        box->sent = box->count = 0;
    return (int)taken;
}

void outbox_free(struct outbox *box) {
    free((void *)box->frames), free((void *)box->lengths);
    memset(box, 0, sizeof *box);
}

/* Give endpoints all packets that have arrived, at most `slots` from each ring. Ring i begins at `rings` + i * `slots` *
 * `slot_bytes`; a packet is `frame_at` bytes behind the begin of its slot; `positions` are the packets taken so far. */
void rings_take(struct endpoints *all, u8 *rings, u64 *positions, u32 slots, u32 slot_bytes, u32 frame_at, s64 now) {
    for (u32 host = 0; host < all->host_count; host++)
        for (u32 i = 0; i < slots; i++) {
            u8 *slot = rings + ((u64)host * slots + positions[host] % slots) * slot_bytes;
            if (!(__atomic_load_n((u32 *)slot, __ATOMIC_ACQUIRE) & OURS))
                break;
            endpoints_receive(all, host, now, slot + frame_at);
            __atomic_store_n((u32 *)slot, 0, __ATOMIC_RELEASE);
            positions[host]++;
        }
}
