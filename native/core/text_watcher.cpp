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
    matched_before_.resize(stops_.size());
}

// Advances the stop matchers to the end of the piece or of the first stop string.
TextWatcher::StopScan TextWatcher::scan_stops(std::string_view piece) {
    if (stops_.empty()) return {};
    for (std::size_t i = 0; i < piece.size(); ++i) {
        const ByteMatcher* hit = nullptr;
        for (ByteMatcher& stop : stops_) {
            if (!stop.feed(piece[i])) continue;
            if (hit == nullptr || stop.pattern().size() > hit->pattern().size()) hit = &stop;
        }
        if (hit == nullptr) continue;
        stop_hit_ = hit->pattern();
        held_back_ = stop_hit_.size() > i + 1 ? stop_hit_.size() - i - 1 : 0;
        return {.found = true, .start = i + 1 - std::min(i + 1, stop_hit_.size()), .end = i + 1};
    }
    return {};
}

// One byte after a closed call, where other text than a marker is refused.
TextWatcher::Place TextWatcher::after_call(char byte) {
    const std::size_t matched = open_.matched();
    if (byte == open_.pattern()[matched])
        return open_.feed(byte) ? Place::kInCall : Place::kAfterCall;
    return matched == 0 && is_blank(byte) ? Place::kAfterCall : Place::kTextAfterCall;
}

// false: the text is refused, the marker state is as before.
bool TextWatcher::scan_markers(std::string_view text) {
    if (open_.pattern().empty() || text.empty()) return true;
    if (place_ == Place::kTextAfterCall) return false;
    const Place place_before = place_;
    const std::size_t matched_before = open_.matched();
    const int closed_before = calls_closed_;
    for (const char byte : text) {
        switch (place_) {
            case Place::kText:
                if (open_.feed(byte)) place_ = Place::kInCall;
                break;
            case Place::kInCall:
                if (!close_.feed(byte)) break;
                ++calls_closed_;
                place_ = refuses_text_after_call_ ? Place::kAfterCall : Place::kText;
                open_.set_matched(0);
                close_.set_matched(0);
                break;
            case Place::kAfterCall:
                place_ = after_call(byte);
                break;
            case Place::kTextAfterCall:
                break;
        }
        if (place_ != Place::kTextAfterCall) continue;
        if (calls_closed_ > closed_before) return true;
        place_ = place_before;
        open_.set_matched(matched_before);
        return false;
    }
    return true;
}

TextWatcher::Signal TextWatcher::feed(std::string_view piece, bool hears_stops) {
    for (std::size_t i = 0; i < stops_.size(); ++i)
        matched_before_[i] = stops_[i].matched();
    const std::size_t held_before = held_back_;
    const StopScan stop = hears_stops ? scan_stops(piece) : StopScan{};
    const int closed_before = calls_closed_;
    if (!scan_markers(stop.found ? piece.substr(0, stop.start) : piece)) {
        for (std::size_t i = 0; i < stops_.size(); ++i)
            stops_[i].set_matched(matched_before_[i]);
        held_back_ = held_before;
        stop_hit_.clear();
        return Signal::kTextAfterCall;
    }
    if (stop.found) {
        if (!keeps_stop_) pending_.resize(pending_.size() - held_back_);
        pending_.append(piece.substr(0, keeps_stop_ ? stop.end : stop.start));
        held_back_ = 0;
        return Signal::kStop;
    }
    pending_.append(piece);
    held_back_ = 0;
    for (const ByteMatcher& matcher : stops_)
        held_back_ = std::max(held_back_, matcher.matched());
    return calls_closed_ > closed_before ? Signal::kCallClosed : Signal::kNone;
}

std::string TextWatcher::take_released() {
    std::string rest = pending_.substr(pending_.size() - held_back_);
    pending_.resize(pending_.size() - held_back_);
    return std::exchange(pending_, std::move(rest));
}

std::string TextWatcher::take_rest() {
    held_back_ = 0;
    for (ByteMatcher& stop : stops_)
        stop.set_matched(0);
    return std::exchange(pending_, {});
}

void TextWatcher::begin_round() {
    pending_.resize(pending_.size() - held_back_);
    held_back_ = 0;
    for (ByteMatcher& stop : stops_)
        stop.set_matched(0);
    open_.set_matched(0);
    close_.set_matched(0);
    place_ = Place::kText;
    calls_closed_ = 0;
}

}  // namespace fermata
