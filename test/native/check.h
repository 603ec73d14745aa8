// TEST(name) { CHECK(x); CHECK_EQ(a, b); } in a file that ends with TEST_MAIN(). A failed check
// ends its test; the others still run.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Failure {
    std::string message;
};

inline auto& tests() {
    static std::vector<std::pair<const char*, std::function<void()>>> all;
    return all;
}

struct Registration {
    Registration(const char* name, std::function<void()> body) {
        tests().emplace_back(name, std::move(body));
    }
};

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

[[noreturn]] inline void fail(const char* file, int line, const std::string& message) {
    throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + message};
}

inline int run() {
    int failed = 0;
    for (const auto& [name, body] : tests()) {
        std::string problem;
        try {
            body();
        } catch (const Failure& failure) {
            problem = failure.message;
        } catch (const std::exception& error) {
            problem = std::string("threw ") + error.what();
        }
        if (problem.empty()) continue;
        failed++;
        std::printf("FAILED %s\n  %s\n", name, problem.c_str());
    }
    std::printf("%zu tests, %d failed\n", tests().size(), failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                        \
    static void test_##name();                                            \
    static const check::Registration register_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) \
    if (!(condition)) check::fail(__FILE__, __LINE__, "expected " #condition)

#define CHECK_EQ(actual, expected)                                                               \
    if (const auto& [actual_, expected_] = std::pair(actual, expected); !(actual_ == expected_)) \
    check::fail(__FILE__, __LINE__,                                                              \
                #actual " is " + check::show(actual_) + ", expected " + check::show(expected_))

#define TEST_MAIN()          \
    int main() {             \
        return check::run(); \
    }
