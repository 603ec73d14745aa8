// Finds every place where one of a set of spellings occurs in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fermata {

struct Occurrence {
    std::size_t begin = 0;
    std::size_t end = 0;
};

// Of one spelling, `count` occurrences, each a byte behind the one before: a run of blanks has as
// many of each shorter run as it has bytes.
struct Occurrences {
    std::size_t spelling = 0;  // the value given to add()
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
};

struct FoundSpellings {
    std::vector<Occurrences> all;      // by spelling, then by begin
    std::vector<Occurrence> shortest;  // of those that begin at a place, by begin
};

class SpellingTrie {
   public:
    // Of equal spellings the first one added is found. Empty spellings are ignored.
    void add(std::string_view spelling, std::size_t value);

    // Texts of less than 2 GB.
    FoundSpellings find_all(std::string_view text) const;

   private:
    static constexpr std::int32_t kNone = -1;

    // children_ maps node and byte to a node; node 0 is the root, whose children are first_.
    std::unordered_map<std::uint64_t, std::int32_t> children_;
    std::array<std::int32_t, 256> first_ = make_first();
    std::vector<std::int64_t> values_ = {kNone};  // per node
    std::size_t value_count_ = 0;                 // one more than the largest value

    static std::array<std::int32_t, 256> make_first();
    std::int32_t child(std::int32_t node, unsigned char byte) const;
};

}  // namespace fermata
