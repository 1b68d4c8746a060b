// The egress of `ina_hw`: sums that left the range of int<32> are flagged, and what was carried is taken off.

    action flag_overflow() {
        hdr.ina.flags = hdr.ina.flags | FLAG_OVERFLOW;
    }
    action refuse_result() {
        flag_overflow();
        hdr.ina.kind = KIND_NOTICE;
    }

    apply {
        if (hdr.carried.summed == 1) {
            FIND_OVERFLOW
            if (meta.at_end == 1) {
                hdr.carried.overflow = 1;
            }
        }
        if (hdr.carried.again == 0) {
            if (hdr.carried.overflow == 1) {
                // A sum that left 32 bits is no result, but a notice to send its fragment to the PS.
                if (hdr.ina.kind == KIND_RESULT) {
                    refuse_result();
                } else {
                    flag_overflow();
                }
            }
            hdr.carried.setInvalid();
        }
        AFTER_EGRESS
    }
