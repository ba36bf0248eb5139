/* SPDX-License-Identifier: MIT
 * 1000 elements in each of the standard containers, for rules on libstdc++. Nothing is inlined, so
 * that each allocation has its container's functions around it. */
#pragma GCC optimize("O0")
#include <fstream>
#include <list>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

struct everything {
    std::vector<int> vector;
    std::map<int, int> map;
    std::set<int> set;
    std::unordered_map<int, int> unordered_map;
    std::unordered_set<int> unordered_set;
    std::deque<int> deque;
    std::list<int> list;
    std::string string;
};

static void fill(everything &all)
{
    for (int i = 0; i < 1000; i++) {
        all.vector.push_back(i);
        all.map[i] = i;
        all.set.insert(i);
        all.unordered_map[i] = i;
        all.unordered_set.insert(i);
        all.deque.push_back(i);
        all.list.push_back(i);
        all.string += "twelve bytes";
    }
}

int main()
{
    auto all = std::make_shared<everything>();
    fill(*all);
    std::ifstream file("/etc/passwd");
    std::ostringstream text;
    text << file.rdbuf() << all->string;
    try {
        throw text.str();
    } catch (const std::string &thrown) {
        return thrown.size() < all->string.size();
    }
}
