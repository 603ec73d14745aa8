// Texts that llama.cpp's splitters of words bear.
//
// For many vocabularies they are a std::regex, whose matcher calls itself for each character of a
// match: a word, or a run of blanks or dashes, of some ten thousand characters would end the
// process.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace fermata {

// In characters.
inline constexpr std::size_t kLongestWord = 2048;

// The text in pieces, of which no word and no run of blanks or signs is longer; one piece if that
// is so of the text. Some splitters take words with single spaces between them for one: such a row
// is cut before a space.
std::vector<std::string_view> cut_long_words(std::string_view text);

}  // namespace fermata
