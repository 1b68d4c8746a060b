/* A source gives frames to a link one after the other, at even times. Included by engine.c.
 *
 * Its frames are in memory of Python's, `stride` bytes apart; after the last one comes the first again. `struct source`
 * has the layout of its record in sources.py.
 */

struct source {
    const u8 *bytes;
    const u32 *lengths; /* of each frame, in bytes */
    u64 stride;
    u32 link, frames, next; /* `next`: the frame that is sent next */
    u32 room;               /* it sends nothing while so many packets wait before its link */
    u64 left;               /* how many frames it still sends */
    s64 interval_ps, due;   /* `due`: when the next frame is to be sent */
};
