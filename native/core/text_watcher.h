// Watches the bytes of one generation for stop strings and tool-call markers, and holds back what
// may still become a stop string. Part of a hold: it lives as long as its sequence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"

namespace fermata {

class TextWatcher {
   public:
    TextWatcher(std::vector<std::string> stop, PauseTriggers pause);

    enum class Signal : std::uint8_t {
        kNone,
        kStop,           // a stop string completed; released() ends before it
        kCallClosed,     // a close marker completed within this piece (calls_closed() counts)
        kTextAfterCall,  // non-blank text after a closed call: the round is over, the piece is
                         // refused
    };

    // Takes the bytes of the next token. On kTextAfterCall the state is as before the call, so the
    // token can be dropped. A prefix of call_open after a closed call is not yet text: it is
    // watched until it is one or the other (a token of a marker spelled in pieces is never refused;
    // if it turns out to be text, kTextAfterCall comes with that later piece, and refused_bytes()
    // tells nothing more is lost).
    Signal feed(std::string_view piece);

    // Bytes that may be shown since the last take; the possible start of a stop string stays back.
    std::string take_released();
    // Everything held back; for the end of a generation or a round.
    std::string take_rest();

    int calls_closed() const { return calls_closed_; }  // in this round
    const std::string& stop_hit() const { return stop_hit_; }
    // A new round after resume: marker state starts afresh, held-back bytes are dropped.
    void begin_round();

   private:
    std::vector<std::string> stop_;
    PauseTriggers pause_;
    std::string held_;  // possible start of a stop string
    std::string released_;
    std::string marker_tail_;  // bytes that may grow into a marker
    std::string stop_hit_;
    enum class Place : std::uint8_t { kText, kInCall, kAfterCall } place_ = Place::kText;
    int calls_closed_ = 0;
};

}  // namespace fermata
