// GBNF text as alternatives of sequences, for gbnf_check. Accepts what llama.cpp's parser accepts,
// within limits.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fermata::gbnf {

// Thrown inside gbnf_parse and gbnf_check only.
struct Fault {
    ErrorCode code;
    std::string message;
};
[[noreturn]] void refuse(const std::string& message);       // grammar_invalid
[[noreturn]] void refuse_size(const std::string& message);  // grammar_too_large

// Which characters something may begin with: one bit each for ASCII, one for all the others.
using Letters = std::bitset<129>;

struct Item {
    enum class Kind : std::uint8_t { kTerminal, kRule, kGroup } kind = Kind::kTerminal;
    std::size_t index = 0;    // of a rule or a group
    std::uint64_t least = 1;  // repetitions
    std::uint64_t most = 1;
    std::uint64_t elements = 1;
    Letters first = Letters().set();  // of a terminal

    bool is_node() const { return kind != Kind::kTerminal; }
};
using Sequence = std::vector<Item>;
struct Node {  // a rule or a group: its alternatives
    std::vector<Sequence> alternatives;
    std::string name;  // of the rule that it is, or is in
    bool defined = false;
};

struct Parsed {
    // The rules and groups; rule `root` is among them, and every rule that is named is defined.
    std::vector<Node> nodes;
    // Of the tokens that it names: `<spelling>` or `<[id]>`.
    std::vector<std::string> tokens;
};

// Throws Fault.
Parsed parse(std::string_view text);

}  // namespace fermata::gbnf
