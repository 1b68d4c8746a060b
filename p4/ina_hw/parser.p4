// The states of the parser from the Ethernet header on: the body of a parser that goes on from its own `start`.

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        // Options would move the UDP header.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (4, 5, PROTOCOL_UDP): first_fragment;
            default: accept;
        }
    }
    // A later fragment has no UDP header. The parser of a Tofino 1 compares 32 bits in a state, and keeps the port.
    state first_fragment {
        transition select(hdr.ipv4.fragment_offset) {
            0: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INA_UDP_PORT: ina;
            default: accept;
        }
    }
    state ina {
        packet.extract(hdr.ina);
        transition select(hdr.ina.kind) {
            KIND_GRADIENT: half;
            KIND_RESULT: half;
            default: accept;
        }
    }
