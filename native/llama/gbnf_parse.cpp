#include "llama/gbnf_parse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fermata::gbnf {

void refuse(const std::string& message) {
    throw Fault{ErrorCode::kGrammarInvalid, message};
}

void refuse_size(const std::string& message) {
    throw Fault{ErrorCode::kGrammarTooLarge, message};
}

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxRules = 5000;
constexpr std::uint64_t kMaxRepeats = 2000;  // llama.cpp's own limit
constexpr std::uint64_t kMaxElements = 1 << 20;
// Longer than the spelling of any: llama.cpp's tokenizer would have to bear it.
constexpr std::size_t kMaxTokenName = 256;

std::size_t letter_index(char32_t letter) {
    return letter < 128 ? static_cast<std::size_t>(letter) : 128;
}

class Parser {
   public:
    explicit Parser(std::string_view text) : text_(text) {}

    Parsed run() {
        skip_blanks(true);
        while (at_ < text_.size())
            parse_rule();
        for (const Node& node : nodes_) {
            if (!node.defined) refuse("Undefined rule: " + node.name);
        }
        if (!rules_.contains("root")) refuse("The grammar has no rule named root.");
        return {.nodes = std::move(nodes_), .tokens = {tokens_.begin(), tokens_.end()}};
    }

   private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    [[noreturn]] void expected(const std::string& what) const {
        const auto line =
            1 + std::count(text_.begin(),
                           text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())),
                           '\n');
        refuse("Line " + std::to_string(line) + ": expected " + what + ".");
    }
    void skip_blanks(bool newlines) {
        while (at_ < text_.size()) {
            const char letter = peek();
            if (letter == '#') {
                while (at_ < text_.size() && peek() != '\n' && peek() != '\r')
                    ++at_;
            } else if (letter == ' ' || letter == '\t' ||
                       (newlines && (letter == '\n' || letter == '\r'))) {
                ++at_;
            } else {
                return;
            }
        }
    }
    static bool is_word(char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               letter == '-' || (letter >= '0' && letter <= '9');
    }
    std::string parse_name() {
        const std::size_t begin = at_;
        while (is_word(peek()))
            ++at_;
        if (at_ == begin) expected("a name");
        return std::string(text_.substr(begin, at_ - begin));
    }
    std::size_t rule_of(const std::string& name) {
        const auto [found, added] = rules_.emplace(name, nodes_.size());
        if (added) add_node(name);
        return found->second;
    }
    std::size_t add_node(const std::string& name) {
        if (nodes_.size() >= kMaxRules) refuse_size("The grammar has too many rules.");
        nodes_.push_back({.alternatives = {}, .name = name});
        return nodes_.size() - 1;
    }
    void parse_rule() {
        const std::string name = parse_name();
        const std::size_t rule = rule_of(name);
        if (nodes_[rule].defined) refuse("The rule " + name + " is defined twice.");
        skip_blanks(false);
        if (text_.substr(std::min(at_, text_.size()), 3) != "::=") expected("::=");
        at_ += 3;
        skip_blanks(true);
        parse_alternatives(rule, name, 0);
        if (at_ < text_.size() && peek() != '\n' && peek() != '\r') expected("a new line");
        skip_blanks(true);
    }
    void parse_alternatives(std::size_t node, const std::string& name, std::size_t depth) {
        if (depth > kMaxDepth) refuse_size("The grammar nests parentheses too deep.");
        std::vector<Sequence> alternatives;
        while (true) {
            alternatives.push_back(parse_sequence(name, depth));
            if (peek() != '|') break;
            ++at_;
            skip_blanks(true);
        }
        nodes_[node].alternatives = std::move(alternatives);
        nodes_[node].defined = true;
    }
    Sequence parse_sequence(const std::string& name, std::size_t depth) {
        Sequence sequence;
        while (true) {
            const char letter = peek();
            if (letter == '"') {
                sequence.push_back(quoted('"'));
            } else if (letter == '[') {
                sequence.push_back(quoted(']'));
            } else if (letter == '.') {
                ++at_;
                sequence.push_back({});
            } else if (letter == '<' || letter == '!') {
                sequence.push_back(token());
            } else if (letter == '(') {
                ++at_;
                skip_blanks(true);
                const std::size_t group = add_node(name);
                parse_alternatives(group, name, depth + 1);
                if (peek() != ')') expected(")");
                ++at_;
                sequence.push_back({.kind = Item::Kind::kGroup, .index = group});
            } else if (is_word(letter)) {
                sequence.push_back({.kind = Item::Kind::kRule, .index = rule_of(parse_name())});
            } else if (letter == '*' || letter == '+' || letter == '?' || letter == '{') {
                if (sequence.empty()) expected("something to repeat");
                repeat(sequence.back());
            } else {
                return sequence;
            }
            skip_blanks(depth > 0);
        }
    }
    // A literal or a class of characters.
    Item quoted(char end) {
        ++at_;
        const bool negated = end == ']' && peek() == '^';
        if (negated) ++at_;
        std::vector<std::size_t> letters;
        Letters all;
        for (; peek() != end; ++at_) {
            if (at_ >= text_.size() || peek() == '\0') expected(std::string(1, end));
            letters.push_back(letter());
            const bool range = end == ']' && peek(1) == '-' && peek(2) != ']' && peek(2) != '\0';
            if (range) {
                at_ += 2;
                const std::size_t last = letter();
                for (std::size_t each = letters.back(); each <= last; ++each)
                    all.set(each);
            }
            all.set(letters.back());
        }
        ++at_;
        // An empty literal is no element at all.
        const bool empty = end == '"' && letters.empty();
        if (end == '"') all = empty ? Letters() : Letters().set(letters.front());
        if (negated) all = (~all).set(128);
        return {.least = empty ? 0u : 1u,
                .elements = std::max<std::uint64_t>(letters.size(), 1),
                .first = all};
    }
    // One character, written as it is or escaped; at its last byte afterwards.
    std::size_t letter() {
        if (peek() != '\\') return letter_index(static_cast<unsigned char>(peek()));
        ++at_;
        const char kind = peek();
        const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
        char32_t value = 0;
        for (int i = 0; i < digits; ++i) {
            ++at_;
            const char digit = peek();
            const std::string_view known = "0123456789abcdef";
            const auto lower = static_cast<char>(digit >= 'A' && digit <= 'F' ? digit + 32 : digit);
            const std::size_t place = known.find(lower);
            if (place == std::string_view::npos) expected("a hexadecimal digit");
            value = value * 16 + static_cast<char32_t>(place);
        }
        if (digits > 0) return letter_index(value);
        const std::string_view simple = "trn\\\"[]-";
        if (kind == '\0' || simple.find(kind) == std::string_view::npos)
            expected("a known escape after \\");
        return letter_index(kind == 't'   ? '\t'
                            : kind == 'r' ? '\r'
                            : kind == 'n' ? '\n'
                                          : static_cast<unsigned char>(kind));
    }
    Item token() {
        if (peek() == '!') ++at_;
        const std::size_t close = text_.find('>', at_);
        if (peek() != '<' || close == std::string_view::npos) expected("<token>");
        if (close - at_ > kMaxTokenName) refuse_size("The name of a token is too long.");
        tokens_.emplace(text_.substr(at_, close + 1 - at_));
        at_ = close + 1;
        return {};
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        if (!(peek() >= '0' && peek() <= '9')) expected("a number");
        for (; peek() >= '0' && peek() <= '9'; ++at_) {
            value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
            if (value > kMaxRepeats) refuse_size("At most 2000 repetitions are allowed.");
        }
        skip_blanks(true);
        return value;
    }
    void repeat(Item& item) {
        const char kind = peek();
        ++at_;
        std::uint64_t least = kind == '+' ? 1 : 0;
        std::uint64_t most = kind == '?' ? 1 : kMaxRepeats;
        if (kind == '{') {
            skip_blanks(true);
            least = most = number();
            if (peek() == ',') {
                ++at_;
                skip_blanks(true);
                most = peek() == '}' ? kMaxRepeats : number();
            }
            if (peek() != '}') expected("}");
            ++at_;
            if (most < least) refuse("A repetition has a maximum below its minimum.");
        }
        item.elements *= std::max<std::uint64_t>(
            kind == '{' ? std::max(least, most == kMaxRepeats ? 1 : most) : 1, 1);
        elements_ += item.elements;
        if (elements_ > kMaxElements) refuse_size("The grammar's repetitions are too many.");
        item.most = item.most * most;
        item.least = item.least * least;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::vector<Node> nodes_;
    std::unordered_set<std::string> tokens_;
    std::unordered_map<std::string, std::size_t> rules_;
    std::uint64_t elements_ = 0;
};

}  // namespace

Parsed parse(std::string_view text) {
    return Parser(text).run();
}

}  // namespace fermata::gbnf
