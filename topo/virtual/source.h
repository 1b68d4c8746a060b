/* A source gives frames to a link one after the other, at even intervals. Included by engine.c.
 *
 * Its frames are in Python's memory, `stride` bytes apart, and are sent cyclically. `struct source` has the layout
 * of its record in engine.py.
 */

struct source {
    const u8 *bytes;
    const u32 *lengths; /* of each frame, in bytes */
    u64 stride;
    u32 link, frames, next; /* `next`: the frame that is sent next */
    u32 room;               /* the source waits while this many packets wait before its link */
    u64 left;               /* the number of frames that are still to be sent */
    s64 interval_ps, due;   /* `due`: the time of the next frame */
};
