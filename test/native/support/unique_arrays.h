// Schemas of arrays whose items must all differ, as src/guidance/schema/write/unique.ts writes
// them.
#pragma once

#include <set>
#include <string>

namespace fermata {

inline const std::string kGuidance =
    R"("x-guidance":{"whitespace_flexible":false,"item_separator":", ?","key_separator":": ?"})";

// The item that no such array may have, and that tells it from others.
inline const std::string kOfTexts = "7919283746501";
inline const std::string kOfNumbers = "\"\xEF\xA3\xBFunique\"";

inline std::string unique_array(const std::string& items, const std::string& marker,
                                const std::string& limits = "", bool is_inner = false) {
    return R"({"anyOf":[{"type":"array","items":)" + items + (limits.empty() ? "" : "," + limits) +
           R"(},{"type":"array","prefixItems":[{"const":)" + marker +
           R"(}],"items":false,"minItems":1}])" + (is_inner ? "" : "," + kGuidance) + "}";
}

// Of an array of texts without commas.
inline bool has_different_items(const std::string& array) {
    std::set<std::string> items;
    std::size_t from = 1;
    while (from + 1 < array.size()) {
        std::size_t end = array.find_first_of(",]", from);
        std::string item = array.substr(from, end - from);
        while (item.starts_with(' '))
            item.erase(0, 1);
        if (!items.insert(item).second) return false;
        from = end + 1;
    }
    return true;
}

}  // namespace fermata
