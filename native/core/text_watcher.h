// Watches the bytes of one generation for stop strings and tool-call markers, and holds back what
// may still become a stop string. Part of a hold: it lives as long as its sequence.
// Time is linear in the bytes fed, for each stop string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"

namespace fermata {

// Finds one pattern in bytes that come one at a time (Knuth, Morris, Pratt). An empty pattern is
// never found.
class ByteMatcher {
   public:
    explicit ByteMatcher(std::string pattern);

    // true: this byte completed the pattern.
    bool feed(char byte);
    // Bytes of the pattern that the input ends with now; the whole length after completion.
    std::size_t matched() const { return matched_; }
    void set_matched(std::size_t matched) { matched_ = matched; }
    const std::string& pattern() const { return pattern_; }

   private:
    std::string pattern_;
    std::vector<std::size_t> fallback_;  // [n]: the longest proper border of the first n bytes
    std::size_t matched_ = 0;
};

class TextWatcher {
   public:
    // `keeps_stop`: the text ends behind a stop string, not before it.
    TextWatcher(std::vector<std::string> stop, PauseTriggers pause, bool keeps_stop = false);

    enum class Signal : std::uint8_t {
        kNone,
        kStop,           // a stop string completed and ends the text. Feed no more.
        kCallClosed,     // a close marker completed within this piece (calls_closed() counts)
        kTextAfterCall,  // non-blank text after a closed call: the round is over, the piece is
                         // refused
    };

    // Takes the bytes of the next token; an empty piece changes nothing.
    //
    // Stop strings are looked for in text only: none begins or ends inside a call or in the blanks
    // after it, and what lies wholly inside of a marker that opens one is no stop string either. So
    // one that could be the start of that marker counts once it is certain that no marker comes.
    // The first to complete wins, of several that complete at one byte the longest.
    //
    // With hold_at_text_after_call, whitespace may follow a closed call, then bytes that could
    // begin call_open. The piece that makes it certain that other text has begun is refused: the
    // watcher is as before it and its token can be dropped. Earlier pieces that looked like the
    // start of a marker ("<") then were text; they stay released or held back as such. Text in the
    // piece that closed the call is kept, and the next piece that is not empty is refused.
    // With `hears_stops` false, no stop string begins or ends in the piece.
    Signal feed(std::string_view piece, bool hears_stops = true);

    // Bytes that may be shown since the last take; the possible start of a stop string stays back.
    std::string take_released();
    // All bytes not yet taken, for the end of a generation or a round; a stop string that began in
    // them is no longer looked for. One that is complete cuts them.
    std::string take_rest();

    int calls_closed() const { return calls_closed_; }  // in this round
    const std::string& stop_hit() const { return stop_hit_; }
    // A new round after resume: marker state starts afresh, held-back bytes are dropped.
    void begin_round();

   private:
    enum class Place : std::uint8_t { kText, kInCall, kAfterCall, kTextAfterCall };

    // A complete stop string that may turn out to be part of a marker that opens a call.
    struct Candidate {
        std::size_t size = 0;    // 0: there is none
        std::size_t behind = 0;  // bytes after it
    };

    // What one piece changes, to undo one that is refused.
    struct Scan {
        std::vector<std::size_t> stops = {};  // matched of stops_
        std::size_t open = 0;                 // and of the markers
        std::size_t close = 0;
        Place place = Place::kText;
        int calls_closed = 0;
        std::size_t pending = 0;
        std::size_t held_back = 0;
        Candidate candidate = {};
    };

    Scan scan() const;
    void restore(const Scan& before);
    void follow_markers(char byte);
    Place after_call(char byte);
    bool completes_stop(char byte);
    bool stop_at(Candidate found);
    void cut_off(Candidate found);
    void forget_stops();

    std::vector<ByteMatcher> stops_;
    std::string stop_hit_;
    bool keeps_stop_;
    Candidate candidate_;

    ByteMatcher open_;
    ByteMatcher close_;
    bool refuses_text_after_call_;
    Place place_ = Place::kText;
    int calls_closed_ = 0;  // in this round

    std::string pending_;        // not yet taken
    std::size_t held_back_ = 0;  // of those, at the end: what may be a stop string
};

}  // namespace fermata
