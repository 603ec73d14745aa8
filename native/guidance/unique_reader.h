// Reads JSON byte by byte inside of arrays whose items must all differ, and says when an item
// equals an earlier one.
//
// Values are compared as JSON compares them: blanks, escapes, the spelling of numbers and the order
// of properties make no difference. For that each item has a plain form: without blanks and
// escapes that it can do without, its numbers as short as they can be. The form grows with the
// item, so a partial item that can still become an earlier one has the beginning of its form.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fermata {

class UniqueReader {
   public:
    // A complete item, as ranges of the text and of its plain form.
    struct Value {
        int previous = -1;  // of the same array
        std::size_t raw = 0;
        std::size_t raw_end = 0;
        std::size_t plain = 0;
        std::size_t plain_end = 0;
        std::string sorted = {};  // plain form with properties sorted; empty: has none
        std::string marker = {};  // no item: the grammar marks the array with it
    };
    struct Frame {
        bool is_array = true;
        bool is_unique = false;
        bool in_item = false;
        bool has_objects = false;  // the item
        std::size_t deepest = 0;   // number of frames in it
        int last = -1;             // index of the last value
        std::size_t raw = 0;       // where the item begins
        std::size_t plain = 0;
    };
    enum class Mode { kBetween, kString, kEscape, kNumber, kWord };
    struct Lexical {
        Mode mode = Mode::kBetween;
        std::size_t number = 0;  // where it begins in the plain form
        int left = 0;            // letters of a word, digits of an escape
        unsigned code = 0;
        unsigned surrogate = 0;  // the first of two, which was read
    };
    struct Mark {
        std::vector<Frame> frames = {};
        Lexical lexical = {};
        std::size_t raw = 0;
        std::size_t plain = 0;
        std::size_t values = 0;
        std::string number = {};
        bool before_item = false;
    };

    // Begins behind the `[` of an array that is not inside of another such one. `marker`: what the
    // grammar allows as its first item, though it is none.
    void open(const std::string& marker);
    // Forgets all.
    void clear();
    // What the grammar allows. `marker`, of a `[`: this array is such a one, too; else nullptr.
    // false: an item equals an earlier one of its array.
    bool feed(char letter, const std::string* marker);
    void mark(Mark& mark) const;
    void undo(const Mark& mark);

    bool active() const { return !frames_.empty(); }
    const std::vector<Frame>& frames() const { return frames_; }
    const std::vector<Value>& values() const { return values_; }
    Mode mode() const { return lexical_.mode; }
    std::string_view raw(const Value& value) const;
    std::string_view plain(const Value& value) const;
    // Of the item that a frame is in.
    std::string_view partial(const Frame& frame) const;
    // A blank outside of a text was read last.
    bool after_blank() const;
    // An item may begin here.
    bool before_item() const;
    bool before_first_item() const;
    // Of an array that has a marker.
    bool is_in_first_item() const;
    // Not amid an escape.
    bool is_between_letters() const;
    std::size_t plain_size() const { return plain_.size(); }
    // What the number that is being read is in the plain form, if it may end here; else empty.
    std::string number() const;

   private:
    bool between(char letter, const std::string* marker);
    void push(char letter, const std::string* marker);
    void escape(char letter);
    void write(unsigned code);
    void begin_value();
    bool end_value();
    bool end_number();

    std::vector<Frame> frames_ = {};
    std::vector<Value> values_ = {};
    std::string raw_ = {};
    std::string plain_ = {};
    Lexical lexical_ = {};
};

}  // namespace fermata
