// TEST(name) { CHECK(x); CHECK_EQ(a, b); } in a file that ends with TEST_MAIN(). A failed check
// ends its test; the others still run.
//
// What a check expands to is compiled thousands of times, under sanitizers too: it is a comparison
// and a call.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace check {

struct Failure {
    std::string message;
};

// Of a check, and what it looks at.
struct Place {
    const char* file;
    int line;
    const char* subject;
};

struct Registration {
    Registration(const char* name, void (*body)());
};

[[noreturn]] void fail(const char* file, int line, std::string_view message);
[[noreturn]] void fail_unequal(const Place& place, const std::string& actual,
                               const std::string& expected);

// All tests of the program. @returns its exit code
int run();

template <typename Value>
std::string show(const Value& value) {
    if constexpr (requires(std::ostream& out) { out << value; }) {
        std::ostringstream text;
        text << value;
        return text.str();
    } else {
        return "(value)";
    }
}

template <typename Actual, typename Expected>
void equal(const Place& place, const Actual& actual, const Expected& expected) {
    if (!(actual == expected)) fail_unequal(place, show(actual), show(expected));
}

}  // namespace check

#define TEST(name)                                                        \
    static void test_##name();                                            \
    static const check::Registration register_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) \
    if (!(condition)) check::fail(__FILE__, __LINE__, "expected " #condition)

#define CHECK_EQ(actual, expected) check::equal({__FILE__, __LINE__, #actual}, actual, expected)

#define TEST_MAIN()          \
    int main() {             \
        return check::run(); \
    }
