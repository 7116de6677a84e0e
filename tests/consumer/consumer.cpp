/* SPDX-License-Identifier: MIT */
#include <cmath>
#include <iostream>
#include <memory>
#include <mha/mha.h>
#include <vector>

struct plan_deleter {
    void operator()(mha_plan *plan) const { mha_plan_free(plan); }
};

int main()
{
    const std::vector<float> q = {1, 2}, k = {1, 0, 0, 1}, v = {3, 3, 3, 3};
    std::vector<float> o(2);
    mha_shape shape = {};
    shape.B = shape.H = shape.L = 1;
    shape.S = shape.D = 2;

    mha_plan *made = nullptr;
    mha_status status = mha_plan_create(&made, &shape, nullptr);
    const std::unique_ptr<mha_plan, plan_deleter> plan(made);
    std::vector<char> work(mha_plan_work_size(plan.get(), 1));
    if (status == MHA_OK)
        status = mha_plan_run(plan.get(), mha_view_bhld(q.data(), 1, 1, 2),
                              mha_view_bhld(k.data(), 1, 2, 2), mha_view_bhld(v.data(), 1, 2, 2),
                              mha_out_bhld(o.data(), 1, 1, 2), nullptr, work.data(), work.size(),
                              nullptr);
    std::cout << "libmha " << mha_version_string() << ": " << mha_status_string(status) << ", "
              << o[0] << "\n";
    return !(status == MHA_OK && std::fabs(o[0] - 3) < 1e-3f);
}
