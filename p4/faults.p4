// Faults on demand: INA packets get lost, overtake one another or are doubled at ports whose entries say so.
//
// Each port draws from a sequence of its own (a linear congruential generator, which a register preset
// starts anywhere): the same packets at a port meet with the same faults on every target, in whatever
// order the ports take their turns. Shares are of 2^32.

struct faults_t {
    bit<1> possible;  // the packet came in by a port with faults
    bit<1> gone;      // it goes no further: lost, or kept
    bit<1> overtaken; // it is kept, and what was kept before goes on in its stead
    bit<1> doubled;   // it goes to a group that has some ports twice
    bit<32> event;    // of a packet that is gone
    bit<32> port;     // by which it came in, and in egress by which it is to leave
    // from the entries
    bit<32> lost;
    bit<32> held;
    bit<32> twice;
    bit<16> group;
    // scratch
    bit<32> drawn;
    bit<8> before8;
    bit<16> before16;
    bit<32> before32;
    bit<48> before48;
    bit<64> before64;
}

#define DRAW \
    draws.read(fault.drawn, fault.port); \
    fault.drawn = fault.drawn * 1664525 + 1013904223; \
    draws.write(fault.port, fault.drawn);

// What one packet with values has of its own beside them: the bits, a name, the field.
#define EACH_HELD(X) \
    X(48, mac_dst, hdr.ethernet.dst) \
    X(48, mac_src, hdr.ethernet.src) \
    X(16, checksum, hdr.ipv4.checksum) \
    X(32, ip_src, hdr.ipv4.src) \
    X(32, ip_dst, hdr.ipv4.dst) \
    X(8, kind, hdr.ina.kind) \
    X(8, flags, hdr.ina.flags) \
    X(16, job, hdr.ina.job) \
    X(16, tree, hdr.ina.tree) \
    X(16, label, hdr.ina.label) \
    X(32, seq, hdr.ina.seq) \
    X(32, slot, hdr.ina.slot) \
    X(64, bitmap, hdr.ina.bitmap) \
    X(16, workers, hdr.ina.workers) \
    X(8, priority, hdr.ina.priority) \
    X(8, part, hdr.ina.part) HELD_BESIDE(X)

#define HELD_FIELD(bits, name, field) register<bit<bits>>(PORTS) held_##name;
#define HELD_VALUE(i) register<bit<32>>(PORTS) held##i;

#define EXCHANGE_FIELD(bits, name, field) \
    held_##name.read(fault.before##bits, fault.port); \
    held_##name.write(fault.port, field); \
    field = fault.before##bits;
#define EXCHANGE_VALUE(i) \
    held##i.read(fault.before32, fault.port); \
    held##i.write(fault.port, hdr.values.v##i); \
    hdr.values.v##i = fault.before32;

// A packet that arrives is lost, or, if it has values, put into the port's place for one packet. The one
// that is there goes on in its stead; an empty place just keeps it.
control Arrival(inout headers_t hdr, inout faults_t fault, inout standard_metadata_t standard) {
    register<bit<32>>(PORTS) draws;
    EACH_HELD(HELD_FIELD)
    EACH_VALUE(HELD_VALUE)

    action faulty(bit<32> lost, bit<32> held) {
        fault.possible = 1;
        fault.lost = lost;
        fault.held = held;
        DRAW
    }
    table arriving {
        key = { standard.ingress_port: exact; }
        actions = { faulty; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action go(bit<32> event) {
        fault.gone = 1;
        fault.event = event;
    }
    action exchange() {
        EACH_VALUE(EXCHANGE_VALUE)
        EACH_HELD(EXCHANGE_FIELD)
    }

    apply {
        if (hdr.ina.isValid() && arriving.apply().hit) {
            if (fault.drawn < fault.lost) {
                go(EVENT_LOST);
            } else if (fault.drawn - fault.lost < fault.held && hdr.values.isValid()) {
                exchange();
                if (hdr.ina.kind == 0) {  // no packet with values is of this kind
                    go(EVENT_HELD);
                } else {
                    fault.overtaken = 1;
                }
            }
        }
    }
}

// A packet that is to leave by a port or to a group goes to another group instead, which has ports twice.
control Doubling(inout faults_t fault, inout standard_metadata_t standard) {
    register<bit<32>>(PORTS) draws;

    action doubled(bit<32> twice, bit<16> group) {
        fault.twice = twice;
        fault.group = group;
        DRAW
    }
    table ways {
        key = {
            standard.egress_spec: exact;
            standard.mcast_grp: exact;
        }
        actions = { doubled; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    apply {
        if (ways.apply().hit && fault.drawn < fault.twice) {
            standard.mcast_grp = fault.group;
            fault.doubled = 1;
        }
    }
}

// A packet that leaves is lost; of a multicast each copy by itself.
control Departure(inout headers_t hdr, inout faults_t fault, inout standard_metadata_t standard) {
    register<bit<32>>(PORTS) draws;

    action faulty(bit<32> lost) {
        DRAW
        fault.gone = (bit<1>)(fault.drawn < lost);
    }
    table leaving {
        key = { standard.egress_port: exact; }
        actions = { faulty; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (hdr.ina.isValid()) {
            leaving.apply();
        }
    }
}
