/* What a node's C functions see of the engine: for machines on events, such as endpoints, in libraries of their own.
 * Included by engine.c.
 *
 * A node has one timer. `receive` is called when a packet has arrived at a port, and may write to its bytes; `wake` when
 * the time of its timer has come. Both send by calling `emit` with the `context` that they were given, any number of
 * times; packets leave in the order of the calls. Simultaneous events are processed in the order of links' numbers;
 * sources come after all links, timers after all sources, in the order of nodes' numbers.
 */
typedef void emit_fn(void *context, u32 port, const u8 *bytes, u32 length);
typedef void receive_fn(void *self, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *emit, void *context);
typedef void wake_fn(void *self, s64 now, emit_fn *emit, void *context);

/* A `context` points to this. */
struct services {
    void (*set_timer)(void *context, u32 node, s64 at);
    u32 (*waiting)(void *context, u32 node, u32 port);
    u32 node; /* the number of the node that is called */
};

#define NEVER INT64_MAX

/* Let the called node's `wake` be called at `at` instead of the time set before, but not before the present; NEVER: not
 * at all. The timer is not set while `wake` is called for it. */
static inline void wake_at(void *context, s64 at) {
    const struct services *services = context;
    services->set_timer(context, services->node, at);
}

/* The number of packets that wait for the link at a port of the called node, which has one, without the packet that is being sent. */
static inline u32 waiting_at(void *context, u32 port) {
    const struct services *services = context;
    return services->waiting(context, services->node, port);
}
