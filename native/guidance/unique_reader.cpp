#include "guidance/unique_reader.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace fermata {

namespace {

// Items with more levels than this keep the order of their properties.
constexpr std::size_t kDeepestSorted = 200;

bool is_blank(char letter) {
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

bool is_of_number(char letter) {
    return (letter >= '0' && letter <= '9') || letter == '-' || letter == '+' || letter == '.' ||
           letter == 'e' || letter == 'E';
}

// The shortest text of the same double, without an exponent where that is usual.
std::string plain_number(const std::string& text) {
    const double value = std::strtod(text.c_str(), nullptr);
    if (value == 0) return "0";
    char buffer[64];
    const bool is_whole = value > -1e15 && value < 1e15 && value == static_cast<long long>(value);
    if (is_whole) return std::to_string(static_cast<long long>(value));
    for (int digits = 15; digits <= 17; ++digits) {
        std::snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
        if (std::strtod(buffer, nullptr) == value) break;
    }
    return buffer;
}

unsigned hex_digit(char letter) {
    if (letter >= '0' && letter <= '9') return static_cast<unsigned>(letter - '0');
    return static_cast<unsigned>((letter | 0x20) - 'a' + 10) & 0xF;
}

// A value's plain form, with the properties of each object by their names; of a repeated name the
// last one counts.
class Sorter {
   public:
    explicit Sorter(std::string_view plain) : plain_(plain) {}

    std::string value() {
        const char first = plain_[at_];
        if (first == '"') return text();
        if (first == '[') return array();
        if (first == '{') return object();
        const std::size_t end = std::min(plain_.find_first_of(",]}", at_), plain_.size());
        return std::string(plain_.substr(std::exchange(at_, end), end - at_));
    }

   private:
    std::string text() {
        const std::size_t from = at_++;
        while (plain_[at_] != '"')
            at_ += plain_[at_] == '\\' ? 2 : 1;
        ++at_;
        return std::string(plain_.substr(from, at_ - from));
    }
    std::string array() {
        std::string written = "[";
        ++at_;
        while (plain_[at_] != ']') {
            if (plain_[at_] == ',') written += plain_[at_++];
            written += value();
        }
        ++at_;
        return written + "]";
    }
    std::string object() {
        std::map<std::string, std::string> members;
        ++at_;
        while (plain_[at_] != '}') {
            if (plain_[at_] == ',') ++at_;
            std::string name = text();
            ++at_;
            members[std::move(name)] = value();
        }
        ++at_;
        std::string written = "{";
        for (const auto& [name, member] : members)
            written.append(name).append(":").append(member).append(",");
        return written + "}";
    }

    std::string_view plain_;
    std::size_t at_ = 0;
};

}  // namespace

void UniqueReader::open(const std::string& marker) {
    plain_ += '[';
    push('[', &marker);
}

void UniqueReader::clear() {
    frames_.clear();
    values_.clear();
    raw_.clear();
    plain_.clear();
    lexical_ = {};
}

bool UniqueReader::feed(char letter, const std::string* marker) {
    bool differs = true;
    switch (lexical_.mode) {
        case Mode::kString:
            if (letter == '\\') {
                lexical_.mode = Mode::kEscape;
                lexical_.left = 0;
            } else {
                if (lexical_.surrogate != 0) write(std::exchange(lexical_.surrogate, 0));
                plain_ += letter;
                if (letter == '"') lexical_.mode = Mode::kBetween;
            }
            raw_ += letter;
            return lexical_.mode != Mode::kBetween || end_value();
        case Mode::kEscape:
            escape(letter);
            raw_ += letter;
            return true;
        case Mode::kWord:
            plain_ += letter;
            raw_ += letter;
            if (--lexical_.left > 0) return true;
            lexical_.mode = Mode::kBetween;
            return end_value();
        case Mode::kNumber:
            if (is_of_number(letter)) {
                plain_ += letter;
                raw_ += letter;
                return true;
            }
            differs = end_number();
            [[fallthrough]];
        case Mode::kBetween:
            return between(letter, marker) && differs;
    }
    return true;
}

// Outside of scalars.
bool UniqueReader::between(char letter, const std::string* marker) {
    if (is_blank(letter)) {
        raw_ += letter;
        return true;
    }
    const bool closes = letter == ']' || letter == '}';
    const bool begins = !closes && letter != ',' && letter != ':';
    if (begins) begin_value();
    plain_ += letter;
    raw_ += letter;
    if (closes) {
        frames_.pop_back();
        return frames_.empty() || end_value();
    }
    if (letter == '[' || letter == '{') {
        push(letter, marker);
    } else if (letter == '"') {
        lexical_.mode = Mode::kString;
    } else if (begins && is_of_number(letter)) {
        lexical_.mode = Mode::kNumber;
        lexical_.number = plain_.size() - 1;
    } else if (begins) {
        lexical_.mode = Mode::kWord;
        lexical_.left = letter == 'f' ? 4 : 3;
    }
    return true;
}

void UniqueReader::push(char letter, const std::string* marker) {
    frames_.push_back({.is_array = letter == '[', .is_unique = marker != nullptr});
    for (Frame& frame : frames_) {
        frame.has_objects = frame.has_objects || letter == '{';
        frame.deepest = std::max(frame.deepest, frames_.size());
    }
    if (marker == nullptr || marker->empty()) return;
    frames_.back().last = static_cast<int>(values_.size());
    values_.push_back({.marker = *marker});
}

void UniqueReader::escape(char letter) {
    if (lexical_.left > 0) {
        lexical_.code = lexical_.code * 16 + hex_digit(letter);
        if (--lexical_.left > 0) return;
    } else if (letter == 'u') {
        lexical_.left = 4;
        lexical_.code = 0;
        return;
    } else {
        constexpr std::string_view kNames = "bfnrt";
        constexpr std::string_view kLetters = "\b\f\n\r\t";
        const std::size_t named = kNames.find(letter);
        const char read = named == std::string_view::npos ? letter : kLetters[named];
        lexical_.code = static_cast<unsigned char>(read);
    }
    lexical_.mode = Mode::kString;
    const unsigned code = lexical_.code;
    if (lexical_.surrogate != 0 && code >= 0xDC00 && code < 0xE000) {
        const unsigned first = std::exchange(lexical_.surrogate, 0);
        write(0x10000 + ((first - 0xD800) << 10) + (code - 0xDC00));
        return;
    }
    if (lexical_.surrogate != 0) write(std::exchange(lexical_.surrogate, 0));
    if (code >= 0xD800 && code < 0xDC00)
        lexical_.surrogate = code;
    else
        write(code);
}

// A character of a text.
void UniqueReader::write(unsigned code) {
    const auto byte = [this](unsigned bits) { plain_ += static_cast<char>(bits); };
    if (code < 0x20) {
        char buffer[8];
        std::snprintf(buffer, sizeof(buffer), "\\u%04x", code);
        plain_ += buffer;
    } else if (code < 0x80) {
        if (code == '"' || code == '\\') plain_ += '\\';
        byte(code);
    } else if (code < 0x800) {
        byte(0xC0 | code >> 6);
        byte(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        byte(0xE0 | code >> 12);
        byte(0x80 | (code >> 6 & 0x3F));
        byte(0x80 | (code & 0x3F));
    } else {
        byte(0xF0 | code >> 18);
        byte(0x80 | (code >> 12 & 0x3F));
        byte(0x80 | (code >> 6 & 0x3F));
        byte(0x80 | (code & 0x3F));
    }
}

void UniqueReader::begin_value() {
    Frame& frame = frames_.back();
    if (!frame.is_array || frame.in_item) return;
    frame.in_item = true;
    frame.has_objects = false;
    frame.deepest = 0;
    frame.raw = raw_.size();
    frame.plain = plain_.size();
}

bool UniqueReader::end_value() {
    Frame& frame = frames_.back();
    if (!frame.is_array) return true;
    frame.in_item = false;
    if (!frame.is_unique) return true;
    Value value = {.previous = frame.last,
                   .raw = frame.raw,
                   .raw_end = raw_.size(),
                   .plain = frame.plain,
                   .plain_end = plain_.size()};
    if (frame.has_objects && frame.deepest < kDeepestSorted)
        value.sorted = Sorter(plain(value)).value();
    const auto equals = [&](const Value& other) {
        return value.sorted.empty() ? other.sorted.empty() && plain(value) == plain(other)
                                    : value.sorted == other.sorted;
    };
    bool differs = true;
    for (int at = frame.last; at >= 0 && differs;
         at = values_[static_cast<std::size_t>(at)].previous)
        differs = !equals(values_[static_cast<std::size_t>(at)]);
    frame.last = static_cast<int>(values_.size());
    values_.push_back(std::move(value));
    return differs;
}

bool UniqueReader::end_number() {
    const std::string written = number();
    plain_.resize(lexical_.number);
    plain_ += written;
    lexical_.mode = Mode::kBetween;
    return end_value();
}

std::string UniqueReader::number() const {
    const bool is_complete =
        lexical_.mode == Mode::kNumber && plain_.back() >= '0' && plain_.back() <= '9';
    return is_complete ? plain_number(plain_.substr(lexical_.number)) : std::string();
}

void UniqueReader::mark(Mark& mark) const {
    mark.frames = frames_;
    mark.lexical = lexical_;
    mark.raw = raw_.size();
    mark.plain = plain_.size();
    mark.values = values_.size();
    mark.before_item = before_item();
    mark.number.clear();
    if (lexical_.mode == Mode::kNumber) mark.number.assign(plain_, lexical_.number);
}

void UniqueReader::undo(const Mark& mark) {
    frames_ = mark.frames;
    lexical_ = mark.lexical;
    raw_.resize(mark.raw);
    values_.resize(mark.values);
    if (lexical_.mode == Mode::kNumber) {
        plain_.resize(lexical_.number);
        plain_ += mark.number;
    } else {
        plain_.resize(mark.plain);
    }
}

std::string_view UniqueReader::raw(const Value& value) const {
    if (!value.marker.empty()) return value.marker;
    return std::string_view(raw_).substr(value.raw, value.raw_end - value.raw);
}

std::string_view UniqueReader::plain(const Value& value) const {
    if (!value.marker.empty()) return value.marker;
    return std::string_view(plain_).substr(value.plain, value.plain_end - value.plain);
}

std::string_view UniqueReader::partial(const Frame& frame) const {
    return std::string_view(plain_).substr(frame.in_item ? frame.plain : plain_.size());
}

bool UniqueReader::before_item() const {
    return active() && frames_.back().is_array && lexical_.mode == Mode::kBetween &&
           (plain_.back() == '[' || plain_.back() == ',');
}

bool UniqueReader::before_first_item() const {
    return before_item() && plain_.back() == '[';
}

bool UniqueReader::is_in_first_item() const {
    const Frame& frame = frames_.back();
    return frame.in_item && frame.last >= 0 &&
           !values_[static_cast<std::size_t>(frame.last)].marker.empty();
}

bool UniqueReader::is_between_letters() const {
    return lexical_.mode != Mode::kEscape && lexical_.surrogate == 0;
}

bool UniqueReader::after_blank() const {
    return lexical_.mode == Mode::kBetween && !raw_.empty() && is_blank(raw_.back());
}

}  // namespace fermata
