/* A tap writes the packets that leave and reach a port to a pcap file with nanoseconds. Included by engine.c.
 *
 * A packet has the time at which its last bit leaves or reaches the port.
 */
#include <errno.h>

struct tap {
    FILE *file;
    u32 out; /* the link by which packets leave */
    int error; /* of the first packet that could not be written, 0 before */
    u64 packets;
};

static struct tap *tap_new(u32 out, int descriptor) {
    struct tap *tap = calloc(1, sizeof *tap);
    if (!tap || !(tap->file = fdopen(descriptor, "ab")))
        abort();
    tap->out = out;
    return tap;
}

static void tap_packet(struct tap *tap, s64 at, const u8 *bytes, u32 length) {
    u32 head[] = {at / PS_PER_S, at % PS_PER_S / 1000, length, length};
    if (tap->error)
        return;
    if (fwrite(head, sizeof head, 1, tap->file) && fwrite(bytes, length, 1, tap->file))
        tap->packets++;
    else
        tap->error = errno;
}

static int tap_close(struct tap *tap, u64 *packets) {
    int error = fclose(tap->file) ? errno : 0;
    error = tap->error ? tap->error : error;
    *packets = tap->packets;
    free(tap);
    return error;
}
