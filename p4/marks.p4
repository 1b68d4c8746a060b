// Marks of congestion (ECN): a packet that finds a long queue behind its port says so from then on.
//
// On no target is a program told how long that queue is, for it belongs to the link. But all that waits
// there has passed here, and an entry says at which rate it leaves. Each port counts the bytes that
// wait: those of every packet are added, and what the link has sent since the last one is taken off
// (a phantom queue, as HULL has them, NSDI 2012). Bytes and rates are in parts of 2^16.

struct marks_t {
    bit<64> rate;      // bytes that the link sends in a microsecond; 0: the port counts nothing
    bit<64> limit;     // from how many bytes on that wait a packet is marked
    bit<64> waiting;
    bit<64> sent;
    bit<48> before;
}

const bit<48> LONG_AGO = 1 << 24;  // after so many microseconds nothing waits any more

control Marks(inout headers_t hdr, inout marks_t mark, inout standard_metadata_t standard) {
    register<bit<64>>(PORTS) waiting;
    register<bit<48>>(PORTS) counted_at;

    action phantom(bit<64> rate, bit<64> limit) {
        mark.rate = rate;
        mark.limit = limit;
    }
    table queues {
        key = { standard.egress_port: exact; }
        actions = { phantom; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action look() {
        waiting.read(mark.waiting, (bit<32>)standard.egress_port);
        counted_at.read(mark.before, (bit<32>)standard.egress_port);
        counted_at.write((bit<32>)standard.egress_port, standard.egress_global_timestamp);
        mark.before = standard.egress_global_timestamp - mark.before;
        mark.sent = (bit<64>)mark.before * mark.rate;
    }
    action join() {
        waiting.write((bit<32>)standard.egress_port, mark.waiting + ((bit<64>)standard.packet_length << 16));
    }
    // The byte of the IP header grows by 1, so its checksum falls by 1, in ones' complement.
    action congested() {
        hdr.ipv4.tos = hdr.ipv4.tos | ECN_CONGESTED;
        hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
    }
    action wrap() { hdr.ipv4.checksum = 0xfffe; }
    action tell() { hdr.ina.flags = hdr.ina.flags | FLAG_ECN; }

    apply {
        if (queues.apply().hit) {
            look();
            if (mark.before >= LONG_AGO || mark.sent >= mark.waiting) {
                mark.waiting = 0;
            } else {
                mark.waiting = mark.waiting - mark.sent;
            }
            if (mark.waiting >= mark.limit && (hdr.ipv4.tos & ECN_CONGESTED) == ECN_CAPABLE) {
                congested();
                if (hdr.ipv4.checksum == 0xffff) {
                    wrap();
                }
                if (hdr.values.isValid()) {
                    tell();
                }
            }
            join();
        }
    }
}
