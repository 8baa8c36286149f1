-- Ten questions that a person asks of the skewed tables: a narrow range of one or two columns, joined to what it is about.

-- J1: how the largest orders were shipped
select l_shipmode, count(*), sum(l_quantity) from orders, lineitem
where o_orderkey = l_orderkey and o_totalprice > 1000000 group by l_shipmode;

-- J2: turnover of the most expensive parts, by brand
select p_brand, sum(l_extendedprice * (1 - l_discount)) from lineitem, part
where l_partkey = p_partkey and p_retailprice > 8000 group by p_brand;

-- J3: what the customers with the largest balances ordered in 1998
select c_mktsegment, o_orderpriority, count(*), sum(o_totalprice) from customer, orders
where c_custkey = o_custkey and c_acctbal > 50000 and o_orderdate >= date '1998-01-01'
group by c_mktsegment, o_orderpriority;

-- J4: where the goods of one day's orders came from
select n_name, count(*), sum(l_extendedprice) from lineitem, orders, supplier, nation
where l_orderkey = o_orderkey and l_suppkey = s_suppkey and s_nationkey = n_nationkey
  and o_orderdate = date '1998-03-09' group by n_name;

-- J5: one week's turnover by market segment
select c_mktsegment, sum(l_extendedprice * (1 - l_discount)) from customer, orders, lineitem
where c_custkey = o_custkey and o_orderkey = l_orderkey
  and o_orderdate between date '1997-12-01' and date '1997-12-07' group by c_mktsegment;

-- J6: what was sold of the goods with the dearest supplies
select ps_suppkey, sum(l_quantity) as sold, max(ps_supplycost) from lineitem, partsupp
where l_partkey = ps_partkey and l_suppkey = ps_suppkey and ps_supplycost > 4000
group by ps_suppkey order by sold desc limit 20;

-- J7: the customers behind the most expensive lines
select c_name, count(*), sum(l_extendedprice) as spent from lineitem, orders, customer
where l_orderkey = o_orderkey and o_custkey = c_custkey and l_extendedprice > 300000
group by c_name order by spent desc limit 20;

-- J8: large orders of one quarter, and what of them was shipped in its last month
select o_orderpriority, l_shipmode, count(*) from orders, lineitem
where o_orderkey = l_orderkey and o_totalprice > 400000
  and o_orderdate between date '1996-10-01' and date '1996-12-31'
  and l_shipdate between date '1996-12-01' and date '1996-12-31' group by o_orderpriority, l_shipmode;

-- J9: whose orders arrived on one day
select n_name, o_orderpriority, count(*) from lineitem, orders, customer, nation
where l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n_nationkey
  and l_receiptdate = date '1997-07-14' group by n_name, o_orderpriority;

-- J10: customers who ever placed one of the very largest orders
select c_mktsegment, count(*), avg(c_acctbal) from customer
where exists (select * from orders where o_custkey = c_custkey and o_totalprice > 2200000) group by c_mktsegment;
