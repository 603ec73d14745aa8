#include "llama/spelling_trie.h"

#include <algorithm>
#include <utility>

namespace fermata {

namespace {

std::uint64_t edge(std::int32_t node, unsigned char byte) {
    return static_cast<std::uint64_t>(node) << 8 | byte;
}

}  // namespace

std::array<std::int32_t, 256> SpellingTrie::make_first() {
    std::array<std::int32_t, 256> first;
    first.fill(kNone);
    return first;
}

std::int32_t SpellingTrie::child(std::int32_t node, unsigned char byte) const {
    if (node == 0) return first_[byte];
    const auto found = children_.find(edge(node, byte));
    return found == children_.end() ? kNone : found->second;
}

void SpellingTrie::add(std::string_view spelling, std::size_t value) {
    if (spelling.empty()) return;
    value_count_ = std::max(value_count_, value + 1);
    std::int32_t node = 0;
    for (const char letter : spelling) {
        const auto byte = static_cast<unsigned char>(letter);
        std::int32_t next = child(node, byte);
        if (next == kNone) {
            next = static_cast<std::int32_t>(values_.size());
            values_.push_back(kNone);
            if (node == 0) {
                first_[byte] = next;
            } else {
                children_.emplace(edge(node, byte), next);
            }
        }
        node = next;
    }
    auto& known = values_[static_cast<std::size_t>(node)];
    if (known == kNone) known = static_cast<std::int64_t>(value);
}

FoundSpellings SpellingTrie::find_all(std::string_view text) const {
    FoundSpellings found;
    constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
    std::vector<std::uint32_t> last(value_count_, kNowhere);  // in found.all, by value
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
        std::int32_t node = 0;
        bool is_first = true;
        for (std::size_t at = begin; at < text.size(); ++at) {
            node = child(node, static_cast<unsigned char>(text[at]));
            if (node == kNone) break;
            const std::int64_t value = values_[static_cast<std::size_t>(node)];
            if (value == kNone) continue;
            if (std::exchange(is_first, false)) found.shortest.push_back({begin, at + 1});
            std::uint32_t& known = last[static_cast<std::size_t>(value)];
            if (known != kNowhere && found.all[known].begin + found.all[known].count == begin) {
                ++found.all[known].count;
                continue;
            }
            known = static_cast<std::uint32_t>(found.all.size());
            found.all.push_back({.spelling = static_cast<std::size_t>(value),
                                 .begin = static_cast<std::uint32_t>(begin),
                                 .count = 1});
        }
    }
    std::ranges::stable_sort(found.all, {}, &Occurrences::spelling);
    return found;
}

}  // namespace fermata
