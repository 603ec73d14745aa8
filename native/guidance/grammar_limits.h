// What a grammar may cost. A grammar comes from whoever sends a request, so each limit bounds the
// time or memory that one of them can take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/result.h"

namespace fermata {

inline constexpr std::size_t kMaxGrammarBytes = 2 << 20;
// Brackets and braces inside each other: parsers descend a level for each.
inline constexpr std::size_t kMaxGrammarDepth = 100;

// A parser also descends a level for each reference in a chain of rules or schemas, which nothing
// but the text's length limits: 3 kB of stack for a rule of 7 bytes, 6 kB for a schema of 24.
inline constexpr std::size_t kCompileStack = std::size_t{16} << 20;
inline constexpr std::size_t kStackPerByte = 1024;

inline constexpr std::size_t kMaxGrammarSymbols = 500'000;
inline constexpr std::uint64_t kCompileFuel = 1'000'000;  // about 50,000 a millisecond
// Of one mask and of what follows up to the next one; about 14,000 a millisecond.
inline constexpr std::uint64_t kStepFuel = 500'000;
inline constexpr std::size_t kStepItems = 50'000;  // of one mask; about 20,000 a millisecond
inline constexpr std::size_t kMaxItemsInRow = 10'000;
inline constexpr std::size_t kMaxLexerStates = 50'000;  // of one matcher; 1 to 2 kB each

inline constexpr std::size_t kMostForcedTokens = 128;  // of one call; the rest follows later

// About what a compiled grammar takes: llguidance does not tell.
inline constexpr std::size_t kGrammarBaseBytes = 64 << 10;
inline constexpr std::size_t kBytesPerCharacter = 64;

// Why the text must not reach a parser; nothing if it may.
std::optional<Error> grammar_fault(std::string_view text);

}  // namespace fermata
