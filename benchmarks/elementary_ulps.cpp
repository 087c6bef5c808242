// The error of binary64 results in ulps of the exact value, by MPFR at 160 bits. The declarations stand in for
// mpfr.h, which a gmpy2 wheel does not bring.
#include <cmath>
#include <cstdint>
#include <cstring>

struct mp { long precision; int sign; long exponent; void *limbs; };
enum { NEAREST = 0, PRECISION = 160 };
extern "C" {
void mpfr_init2(mp *, long); void mpfr_clear(mp *); int mpfr_set_d(mp *, double, int); double mpfr_get_d(const mp *, int);
int mpfr_sub_d(mp *, const mp *, double, int); int mpfr_mul_2si(mp *, const mp *, long, int);
int mpfr_add_ui(mp *, const mp *, unsigned long, int); int mpfr_ui_div(mp *, unsigned long, const mp *, int);
int mpfr_mul(mp *, const mp *, const mp *, int); int mpfr_div(mp *, const mp *, const mp *, int);
int mpfr_sub(mp *, const mp *, const mp *, int); int mpfr_add(mp *, const mp *, const mp *, int); int mpfr_neg(mp *, const mp *, int); int mpfr_const_pi(mp *, int);
int mpfr_set_str(mp *, const char *, int, int); int mpfr_sqrt_ui(mp *, unsigned long, int); int mpfr_sqrt(mp *, const mp *, int);
int mpfr_lgamma(mp *, int *, const mp *, int); int mpfr_mul_d(mp *, const mp *, double, int);
#define ONE(f) int mpfr_##f(mp *, const mp *, int);
#define ALL(M) M(exp) M(exp2) M(exp10) M(expm1) M(log) M(log2) M(log10) M(log1p) M(sin) M(cos) M(tan) M(sinpi) \
  M(cospi) M(asin) M(acos) M(atan) M(sinh) M(cosh) M(tanh) M(asinh) M(acosh) M(atanh) M(erf) M(erfc) M(cbrt) M(digamma)
ALL(ONE) ONE(rec_sqrt)
#define TWO(f) int mpfr_##f(mp *, const mp *, const mp *, int);
TWO(pow) TWO(atan2) TWO(hypot)
}
static void square_root(mp *r, const mp *x) { mpfr_rec_sqrt(r, x, NEAREST); }
static void logistic(mp *r, const mp *x) {
  mpfr_neg(r, x, NEAREST); mpfr_exp(r, r, NEAREST); mpfr_add_ui(r, r, 1, NEAREST); mpfr_ui_div(r, 1, r, NEAREST); }
static void softplus(mp *r, const mp *x) {           // the sum of x and log1p(exp(-x)) where exp(x) is huge
  double v = mpfr_get_d(x, NEAREST);
  if (v < 1000) { mpfr_exp(r, x, NEAREST); mpfr_log1p(r, r, NEAREST); }
  else mpfr_add_ui(r, x, 0, NEAREST); }
static void loggamma(mp *r, const mp *x) { int sign; mpfr_lgamma(r, &sign, x, NEAREST); }
static void gelu_erf(mp *r, const mp *x) {
  mp a, b; mpfr_init2(&a, PRECISION); mpfr_init2(&b, PRECISION);
  mpfr_sqrt_ui(&a, 2, NEAREST); mpfr_div(&a, x, &a, NEAREST); mpfr_neg(&a, &a, NEAREST); mpfr_erfc(&b, &a, NEAREST);
  mpfr_mul(r, x, &b, NEAREST); mpfr_mul_2si(r, r, -1, NEAREST); mpfr_clear(&a); mpfr_clear(&b); }
static void gelu_tanh(mp *r, const mp *x) {
  mp a, b; mpfr_init2(&a, PRECISION); mpfr_init2(&b, PRECISION);
  mpfr_set_str(&a, "0.044715", 10, NEAREST); mpfr_mul(&a, &a, x, NEAREST); mpfr_mul(&a, &a, x, NEAREST);
  mpfr_add_ui(&a, &a, 1, NEAREST); mpfr_mul(&a, &a, x, NEAREST); mpfr_const_pi(&b, NEAREST);
  mpfr_ui_div(&b, 8, &b, NEAREST); mpfr_sqrt(&b, &b, NEAREST); mpfr_mul(&a, &a, &b, NEAREST);
  logistic(&b, &a); mpfr_mul(r, x, &b, NEAREST); mpfr_clear(&a); mpfr_clear(&b); }
static void logaddexp(mp *r, const mp *x, const mp *y) {
  double u = mpfr_get_d(x, NEAREST), v = mpfr_get_d(y, NEAREST);
  if (u < v) { const mp *t = x; x = y; y = t; }
  if (u != u || v != v) { mpfr_add(r, x, y, NEAREST); return; }
  if (std::fabs(u) > 1e6 || std::fabs(v) > 1e6) { mpfr_add_ui(r, x, 0, NEAREST); return; }
  mp a; mpfr_init2(&a, 2200); mpfr_sub(&a, y, x, NEAREST); mpfr_exp(r, &a, NEAREST); mpfr_log1p(r, r, NEAREST);
  mpfr_add(r, r, x, NEAREST); mpfr_clear(&a); }

typedef void (*one)(mp *, const mp *);
typedef void (*two)(mp *, const mp *, const mp *);
static const struct { const char *name; one f; two g; } FUNCTIONS[] = {
#define E1(f) {#f, [](mp *r, const mp *x) { mpfr_##f(r, x, NEAREST); }, 0},
#define E2(f) {#f, 0, [](mp *r, const mp *x, const mp *y) { mpfr_##f(r, x, y, NEAREST); }},
  ALL(E1) E2(pow) E2(atan2) E2(hypot)
  {"rsqrt", square_root, 0}, {"logistic", logistic, 0}, {"softplus", softplus, 0}, {"lgamma", loggamma, 0},
  {"gelu_erf", gelu_erf, 0}, {"gelu_tanh", gelu_tanh, 0}, {"logaddexp", 0, logaddexp},
};

static double in_ulps(const mp *r, double h, double got, mp *d) {          // (got - exact) / ulp(exact)
  double size = std::fabs(h); int e;
  std::frexp(size < 0x1p-1022 ? 0x1p-1022 : size, &e);
  mpfr_sub_d(d, r, got, NEAREST); mpfr_mul_2si(d, d, 53 - e, NEAREST);
  return -mpfr_get_d(d, NEAREST);
}

// errors[i]: the signed error of o[i] at x[i] in ulps, for a one-argument function and finite results.
extern "C" int errors(const char *name, const double *x, const double *o, int64_t n, double *found) {
  one f = 0;
  for (auto &e : FUNCTIONS) if (!strcmp(e.name, name)) f = e.f;
  if (!f) return -1;
  mp a, r, d; mpfr_init2(&a, 53); mpfr_init2(&r, PRECISION); mpfr_init2(&d, 64);
  for (int64_t i = 0; i < n; i++) {
    mpfr_set_d(&a, x[i], NEAREST); f(&r, &a);
    found[i] = in_ulps(&r, mpfr_get_d(&r, NEAREST), o[i], &d);
  }
  mpfr_clear(&a); mpfr_clear(&r); mpfr_clear(&d);
  return 0;
}

// out: [worst of normal results, argument 1, argument 2, worst of subnormal results, misrounded, special values wrong]
extern "C" int ulps(const char *name, const double *x, const double *y, const double *o, int64_t n, double *out) {
  one f = 0; two g = 0;
  for (auto &e : FUNCTIONS) if (!strcmp(e.name, name)) f = e.f, g = e.g;
  if (!f && !g) return -1;
  mp a, b, r, d; mpfr_init2(&a, 53); mpfr_init2(&b, 53); mpfr_init2(&r, PRECISION); mpfr_init2(&d, 64);
  for (int i = 0; i < 6; i++) out[i] = 0;
  for (int64_t i = 0; i < n; i++) {
    mpfr_set_d(&a, x[i], NEAREST);
    if (g) mpfr_set_d(&b, y[i], NEAREST);
    if (f) f(&r, &a); else g(&r, &a, &b);
    double h = mpfr_get_d(&r, NEAREST);
    if (h != h || std::isinf(h) || h == 0) {           // the overflow threshold and signed zeros must be right
      bool same = h != h ? o[i] != o[i] : h == o[i] && std::signbit(h) == std::signbit(o[i]);
      bool ours = !strncmp(name, "gelu", 4) && x[i] < -1e300;       // -inf * 0: -0 here
      if (!strcmp(name, "rsqrt") && x[i] == 0) same = std::isinf(o[i]) && std::signbit(o[i]) == std::signbit(x[i]);
      if (!same && !ours && !(h == 0 && std::fabs(o[i]) <= 0x1p-1074)) { if (!out[5]++) out[1] = x[i], out[2] = g ? y[i] : 0; }
      continue; }
    bool subnormal = std::fabs(h) < 0x1p-1022;
    double got = std::isinf(o[i]) ? std::copysign(0x1.fffffffffffffp1023, o[i]) : o[i];
    double error = std::fabs(in_ulps(&r, h, got, &d)) + std::isinf(o[i]);
    if (o[i] != o[i]) error = INFINITY;
    out[4] += o[i] != h;
    if (subnormal) { if (error > out[3]) out[3] = error; }
    else if (error > out[0]) { out[0] = error; if (!out[5]) out[1] = x[i], out[2] = g ? y[i] : 0; }
  }
  mpfr_clear(&a); mpfr_clear(&b); mpfr_clear(&r); mpfr_clear(&d);
  return 0;
}
