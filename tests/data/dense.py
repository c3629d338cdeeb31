"""Golden values of theory::dense, by numerical integration of the definitions: python3 dense.py > dense.json.

Nothing here is a closed form of the crate. A term is exp(a w^2 + b w u - u^2/2) (1 - 4a)^(1/4) in each coordinate; its
moments are integrals against the normal density, by the trapezoidal rule in 60 digits, whose error on such integrands is
below 1e-100; products over coordinates are those of independent coordinates. The best a is a zero of the derivative of the integral, under the integral sign.
"""

import json
import random

from mpmath import mp, mpf, exp, expm1, findroot, log, pi, sqrt

mp.dps = 60


def term(a, omega, u):
    return (1 - 4 * a) ** mpf("0.25") * exp(a * omega**2 + sqrt(1 - 4 * a) * omega * u - u * u / 2)


def mean(product, a_sum, shift):
    """E product(omega) for omega ~ N(0, 1), where product has the quadratic term a_sum and the linear one shift."""
    spread = 1 / sqrt(1 - 2 * a_sum)
    centre = shift * spread**2
    step = spread / 4
    # Beyond 17 deviations less than 1e-62 is left.
    points = (centre + k * step for k in range(-70, 71))
    return step / sqrt(2 * pi) * mp.fsum(product(omega) * exp(-omega * omega / 2) for omega in points)


def moments(a, points, others):
    """ln of E ff ff', E ff ff'(-omega) and the kernels' product, in one coordinate."""
    (u, v), (s, t) = points, others
    b = sqrt(1 - 4 * a)
    kernel = mean(lambda o: term(a, o, u) * term(a, o, v), 2 * a, b * (u + v))
    other = mean(lambda o: term(a, o, s) * term(a, o, t), 2 * a, b * (s + t))
    # Unbiased, to all digits.
    assert abs(kernel / exp(u * v) - 1) < mpf(10) ** -50 and abs(other / exp(s * t) - 1) < mpf(10) ** -50
    same = lambda o: term(a, o, u) * term(a, o, v) * term(a, o, s) * term(a, o, t)
    turned = lambda o: term(a, o, u) * term(a, o, v) * term(a, -o, s) * term(a, -o, t)
    equal = mean(same, 4 * a, b * (u + v + s + t)) / (kernel * other)
    opposite = mean(turned, 4 * a, b * (u + v - s - t)) / (kernel * other)
    return log(equal), log(opposite)


def text(value):
    return mp.nstr(value, 32)


def case(generator, d, size, m, a):
    """A pair of pairs (x, y), (x, y'), with a given or drawn coefficient for each coordinate."""
    # Doubles, which JSON holds to the bit.
    draw = lambda: generator.gauss(0, size)
    x, y, other = ([draw() for _ in range(d)] for _ in range(3))
    w = [u + v for u, v in zip(x, y)]
    w_prime = [u + v for u, v in zip(x, other)]
    rho = [1 / (1 - 8 * value) for value in a]
    second = antithetic = cross = turned = mpf(0)
    for k in range(d):
        # From the doubles that the crate gets: a from rho, and a point 0 beside the sum.
        exact, at, to = (1 - 1 / mpf(rho[k])) / 8, mpf(w[k]), mpf(w_prime[k])
        half = mpf(x[k]) / 3
        own, opposite = moments(exact, (half, at - half), (half, at - half))
        shared, against = moments(exact, (half, at - half), (half, to - half))
        second, antithetic = second + own, antithetic + opposite
        cross, turned = cross + shared, turned + against
    return {
        "w": w, "w_prime": w_prime, "rho": rho, "m": m,
        "ln_second_moment": text(second),
        "ln_variance": text(log(expm1(second) / m)),
        "ln_variance_antithetic": text(log((expm1(second) + expm1(antithetic)) / m)),
        "covariance": text(expm1(cross) / m),
        "covariance_antithetic": text((expm1(cross) + expm1(turned)) / m),
    }


def best(phi):
    """a with the least ln E (ff)^2 / K^2 at w^2 = phi, where the logarithm, affine in w^2, has its mean."""
    w = sqrt(mpf(phi))

    def slope(a):
        # d/da of the logarithms of E (ff)^2 and of (E ff)^2, at u = v = w/2.
        u, b = w / 2, sqrt(1 - 4 * a)
        rate = lambda o: o * o - 2 / b * o * u - 1 / (1 - 4 * a)
        square = lambda o: term(a, o, u) ** 4
        return mean(lambda o: 4 * rate(o) * square(o), 4 * a, 4 * b * u) / mean(square, 4 * a, 4 * b * u)

    start = -mpf(phi) / 2 if phi < 1 else -mpf(phi) / 4
    a = findroot(slope, (start, start * mpf("1.01")), tol=mpf(10) ** -70, maxsteps=200)
    return {"phi": phi, "a": text(a), "rho": text(1 / (1 - 8 * a))}


def main():
    generator = random.Random(18)
    cases = []
    for d, size in [(1, 0.02), (1, 0.5), (2, 0.1), (3, 0.5), (3, 2.0), (5, 0.3), (8, 1.0), (16, 0.7)]:
        cases.append(case(generator, d, size, 1, [0.0] * d))
        cases.append(case(generator, d, size, 64, [-0.05] * d))
        cases.append(case(generator, d, size, 256, [generator.uniform(-0.5, 0.0) for _ in range(d)]))
        cases.append(case(generator, d, size, 1000, [generator.uniform(-3.0, 0.1) for _ in range(d)]))
    optima = [best(phi) for phi in (1e-9, 1e-4, 0.02, 0.25, 1.0, 3.5, 20.0, 1e3, 1e6)]
    print(json.dumps({"digits": mp.dps, "cases": cases, "optima": optima}, indent=1))


main()
