#include "core/text_watcher.h"

#include <algorithm>
#include <utility>

namespace fermata {
namespace {

bool is_blank(char byte) {
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r' || byte == '\f' ||
           byte == '\v';
}

// A call may follow any blanks, so those that a marker begins with say nothing.
std::string without_leading_blanks(const std::string& text) {
    return {std::ranges::find_if_not(text, is_blank), text.end()};
}

}  // namespace

ByteMatcher::ByteMatcher(std::string pattern)
    : pattern_(std::move(pattern)), fallback_(pattern_.size() + 1) {
    for (std::size_t end = 1; end < pattern_.size(); ++end) {
        std::size_t border = fallback_[end];
        while (border > 0 && pattern_[border] != pattern_[end])
            border = fallback_[border];
        fallback_[end + 1] = pattern_[border] == pattern_[end] ? border + 1 : 0;
    }
}

bool ByteMatcher::feed(char byte) {
    if (pattern_.empty()) return false;
    if (matched_ == pattern_.size()) matched_ = fallback_[matched_];
    while (matched_ > 0 && pattern_[matched_] != byte)
        matched_ = fallback_[matched_];
    if (pattern_[matched_] == byte) ++matched_;
    return matched_ == pattern_.size();
}

TextWatcher::TextWatcher(std::vector<std::string> stop, PauseTriggers pause, bool keeps_stop)
    : keeps_stop_(keeps_stop),
      open_(without_leading_blanks(pause.call_open)),
      close_(std::move(pause.call_close)),
      refuses_text_after_call_(pause.hold_at_text_after_call) {
    for (std::string& text : stop)
        stops_.emplace_back(std::move(text));
}

// One byte after a closed call, where blanks and another marker may come.
TextWatcher::Place TextWatcher::after_call(char byte) {
    const std::size_t matched = open_.matched();
    if (byte == open_.pattern()[matched] || !refuses_text_after_call_) {
        if (open_.feed(byte)) return Place::kInCall;
        if (open_.matched() > matched) return Place::kAfterCall;
    }
    if (matched == 0 && is_blank(byte)) return Place::kAfterCall;
    return refuses_text_after_call_ ? Place::kTextAfterCall : Place::kText;
}

void TextWatcher::follow_markers(char byte) {
    switch (place_) {
        case Place::kText:
            if (open_.feed(byte)) place_ = Place::kInCall;
            break;
        case Place::kInCall:
            if (!close_.feed(byte)) break;
            ++calls_closed_;
            place_ = Place::kAfterCall;
            open_.set_matched(0);
            close_.set_matched(0);
            break;
        case Place::kAfterCall:
            place_ = after_call(byte);
            break;
        case Place::kTextAfterCall:
            break;
    }
}

// One byte of text, which is the last of pending_.
bool TextWatcher::completes_stop(char byte) {
    const ByteMatcher* hit = nullptr;
    for (ByteMatcher& stop : stops_) {
        if (!stop.feed(byte)) continue;
        if (hit == nullptr || stop.pattern().size() > hit->pattern().size()) hit = &stop;
    }
    const std::size_t in_marker = place_ == Place::kText ? open_.matched() : 0;
    if (candidate_.size > 0 && candidate_.size + ++candidate_.behind > in_marker)
        return stop_at(candidate_);
    if (hit == nullptr) return false;
    const Candidate found{.size = hit->pattern().size()};
    if (found.size > in_marker) return stop_at(found);
    if (candidate_.size == 0) candidate_ = found;
    return false;
}

bool TextWatcher::stop_at(Candidate found) {
    stop_hit_ = pending_.substr(pending_.size() - found.behind - found.size, found.size);
    cut_off(found);
    return true;
}

void TextWatcher::cut_off(Candidate stop) {
    pending_.resize(pending_.size() - stop.behind - (keeps_stop_ ? 0 : stop.size));
    held_back_ = 0;
    candidate_ = {};
}

TextWatcher::Scan TextWatcher::scan() const {
    Scan scan{.open = open_.matched(),
              .close = close_.matched(),
              .place = place_,
              .calls_closed = calls_closed_,
              .pending = pending_.size(),
              .held_back = held_back_,
              .candidate = candidate_};
    for (const ByteMatcher& stop : stops_)
        scan.stops.push_back(stop.matched());
    return scan;
}

void TextWatcher::restore(const Scan& before) {
    for (std::size_t i = 0; i < stops_.size(); ++i)
        stops_[i].set_matched(before.stops[i]);
    open_.set_matched(before.open);
    close_.set_matched(before.close);
    place_ = before.place;
    calls_closed_ = before.calls_closed;
    pending_.resize(before.pending);
    held_back_ = before.held_back;
    candidate_ = before.candidate;
}

TextWatcher::Signal TextWatcher::feed(std::string_view piece, bool hears_stops) {
    if (piece.empty()) return Signal::kNone;
    if (place_ == Place::kTextAfterCall) return Signal::kTextAfterCall;
    const Scan before = scan();
    for (const char byte : piece) {
        pending_ += byte;
        if (!open_.pattern().empty()) follow_markers(byte);
        if (place_ == Place::kInCall || place_ == Place::kAfterCall) {
            forget_stops();
        } else if (hears_stops && completes_stop(byte)) {
            return Signal::kStop;
        }
        if (place_ == Place::kTextAfterCall && calls_closed_ == before.calls_closed) {
            restore(before);
            return Signal::kTextAfterCall;
        }
    }
    held_back_ = candidate_.size + candidate_.behind;
    for (const ByteMatcher& stop : stops_)
        held_back_ = std::max(held_back_, stop.matched());
    return calls_closed_ > before.calls_closed ? Signal::kCallClosed : Signal::kNone;
}

std::string TextWatcher::take_released() {
    std::string rest = pending_.substr(pending_.size() - held_back_);
    pending_.resize(pending_.size() - held_back_);
    return std::exchange(pending_, std::move(rest));
}

std::string TextWatcher::take_rest() {
    if (candidate_.size > 0) cut_off(candidate_);
    forget_stops();
    return std::exchange(pending_, {});
}

void TextWatcher::forget_stops() {
    for (ByteMatcher& stop : stops_)
        stop.set_matched(0);
    candidate_ = {};
    held_back_ = 0;
}

void TextWatcher::begin_round() {
    pending_.resize(pending_.size() - held_back_);
    forget_stops();
    open_.set_matched(0);
    close_.set_matched(0);
    place_ = Place::kText;
    calls_closed_ = 0;
}

}  // namespace fermata
